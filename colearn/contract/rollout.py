"""Rollout interface: how an episode branches into a tree of joint histories."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from colearn.contract.bounds import check_bounds
from colearn.contract.types import Node


@dataclass(frozen=True, slots=True)
class Round:
    """Joint actions that are executed together at a node."""

    joint_actions: Sequence[Mapping[str, int]]
    """Joint actions, as mappings from an agent to the index of the action that this agent takes."""
    candidate_of: str | None = None
    """The agent whose candidate actions are scored while the other agents' actions are fixed; None:
    every joint action is a sample of all agents."""
    credits: Sequence[Mapping[str, float]] = ()
    """The credit of each joint action alone, by agent (`Credit.step`); empty until the joint
    actions have been executed."""


class Rollout(ABC):
    """A rollout shape: a stateless frozen dataclass that makes the five decisions listed below.

    Other code (the grower) extends the tree from the nodes that have no children. The shape decides
    how many trees an item has (`trees`), how many actions to draw at a node (`samples`), how to
    pair them (`joint_actions`), what to try after the first outcomes (`next_round`), and which
    children continue (`continues`). AT-GRPO's greedy tree scores each agent's candidate actions,
    one agent after another, and keeps the best candidate. MHGPO's forks draw several actions of one
    agent, which is chosen for each item.

    The argument `rng` of a decision is a random generator that depends only on the seed, the place
    in the tree and, if a round has been executed, its `candidate_of`.
    """

    forks_later: ClassVar[bool] = True
    """Whether histories may branch after the first turn."""

    def __post_init__(self) -> None:
        """Errors: ConfigError for a setting out of bounds."""
        check_bounds(self)

    def trees(
        self, item: Any, agents: Sequence[str], rng: np.random.Generator
    ) -> Sequence[Rollout]:
        """Returns the shapes of the trees that are grown from `item`, with one entry per tree. By
        default, one tree of this shape is grown."""
        return (self,)

    @abstractmethod
    def samples(self, at: Node[Any]) -> Mapping[str, int]:
        """Number of actions that each acting agent draws at a node."""

    @abstractmethod
    def joint_actions(
        self, at: Node[Any], counts: Mapping[str, int]
    ) -> Sequence[Mapping[str, int]]:
        """The joint actions to execute. A joint action is given by the index of every agent's
        action."""

    @property
    def draws_alternatives(self) -> bool:
        """Whether actions outside all joint actions are kept as `Node.alternatives` for a
        critic."""
        return False

    def next_round(
        self,
        at: Node[Any],
        counts: Mapping[str, int],
        tried: Sequence[Round],
        rng: np.random.Generator,
    ) -> Round | None:
        """The next joint actions to execute, given the rounds that have been executed, with their
        credits; None: no further joint actions. By default, all joint actions are executed in one
        round."""
        return None if tried else Round(self.joint_actions(at, counts))

    @property
    def cuts(self) -> bool:
        """Whether the shape expands only some children, which it selects by immediate credit. The
        other children have no later rewards, so returns and values of siblings cannot be
        compared."""
        return type(self).continues is not Rollout.continues

    def continues(
        self, at: Node[Any], tried: Sequence[Round], rng: np.random.Generator
    ) -> Sequence[int]:
        """The children to expand further, as indices into the joint actions of all rounds; all by
        default."""
        return range(sum(len(tried_round.joint_actions) for tried_round in tried))

    @property
    def group_size(self) -> int:
        """Number of joint actions per node of the first turn; group baselines need at least two
        joint actions."""
        return 1
