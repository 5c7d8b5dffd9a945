"""The rollout shape: how an episode branches into a tree of joint histories."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from colearn.bounds import check_bounds
from colearn.seeding import Key, derive_rng
from colearn.types import Node, Outcome


@dataclass(frozen=True)
class Branching:
    """A live node, as a shape sees it."""

    item: Any
    node: Node[Any]
    keys: tuple[Key, ...]
    """What the shape's randomness at this node is derived from."""
    acted: Mapping[str, int] = field(default_factory=dict)
    """How often each agent has acted on the way here; an agent left out has not."""
    programs: frozenset[str] = frozenset()
    """The agents whose seats programs have taken: of their actions there is nothing to compare."""

    def candidates(self, k: int) -> dict[str, int]:
        """K actions of each acting agent, one of a program."""
        return {agent: 1 if agent in self.programs else k for agent in self.acting}

    @property
    def acting(self) -> tuple[str, ...]:
        """The agents that act here, in the task's order."""
        return tuple(self.node.observations)

    @property
    def turn(self) -> int:
        return self.node.turn

    @cached_property
    def rng(self) -> np.random.Generator:
        """The shape's own at this node: its draws move nothing else."""
        return derive_rng(*self.keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """One joint action that was tried at a node, and what it led to."""

    chosen: Mapping[str, int]
    """Which of its actions each acting agent took."""
    outcome: Outcome[Any]
    rewards: Mapping[str, float]
    """Credited for this edge alone, by agent (`Credit.step`)."""
    candidate_of: str | None = None
    """As in its `Round`."""


@dataclass(frozen=True, slots=True)
class Round:
    """Joint actions that are executed together at a node."""

    joint_actions: Sequence[Mapping[str, int]]
    """For each, which of its own actions every agent takes."""
    candidate_of: str | None = None
    """The agent whose candidates they score, the other agents' actions held fixed; None: every
    joint action is a sample of all agents."""


class Rollout(ABC):
    """A stateless strategy: a frozen dataclass that answers five questions.

    The grower advances live nodes; the shape only says how many trees an item has, how many
    actions to draw at a node, how to pair them, what to try once the first outcomes are known, and
    which children live on. AT-GRPO's greedy tree scores one agent's candidates after another's
    (`next_round`) and keeps the best (`continues`); MHGPO's forks draw several actions of one agent
    only (`samples`) and choose that agent item by item (`trees`).
    """

    forks_later: ClassVar[bool] = True
    """Histories may branch after the first turn."""

    def __post_init__(self) -> None:
        """Errors: ConfigError for a setting outside of its bounds."""
        check_bounds(self)

    def trees(
        self, item: Any, agents: Sequence[str], rng: np.random.Generator
    ) -> Sequence[Rollout]:
        """The shape of each tree that is grown from `item`; one, of this shape, by default."""
        return (self,)

    @abstractmethod
    def samples(self, at: Branching) -> Mapping[str, int]:
        """How many actions each acting agent draws at a node."""

    @abstractmethod
    def joint_actions(
        self, at: Branching, counts: Mapping[str, int]
    ) -> Sequence[Mapping[str, int]]:
        """The joint actions to execute: for each, which of its own actions every agent takes."""

    @property
    def draws_alternatives(self) -> bool:
        """Actions that no joint action takes are kept, for a critic to read
        (`Node.alternatives`)."""
        return False

    def next_round(
        self, at: Branching, counts: Mapping[str, int], tried: Sequence[Child]
    ) -> Round | None:
        """What to execute next, given what the joint actions `tried` here led to; None: nothing
        more. By default all joint actions are one round."""
        return None if tried else Round(self.joint_actions(at, counts))

    @property
    def cuts(self) -> bool:
        """Only some children go on, by what they were credited at once. The others have no future,
        so returns and values of siblings cannot be compared."""
        return type(self).continues is not Rollout.continues

    def continues(self, at: Branching, children: Sequence[Child]) -> Sequence[int]:
        """The children to expand further, by number; all of them unless a shape says otherwise."""
        return range(len(children))

    @property
    def group_size(self) -> int:
        """Joint actions per node of the first turn; group baselines need at least two."""
        return 1
