"""Rollout interface: how an episode branches into a tree of joint histories."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from colearn.contract.bounds import check_bounds
from colearn.contract.types import Node, Tree

Uncertainty = Callable[[Sequence[Tree[Any]]], Sequence[Mapping[tuple[int, ...], float]]]
"""Function that measures how unsure a critic is at the nodes of every tree. The results are keyed
by the node's path; a node without an entry was not measured."""


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
    """A rollout shape: a stateless frozen dataclass that makes the six decisions listed below.

    Other code (the grower) extends the tree from the nodes that have no children. The shape decides
    how many trees an item has (`trees`), how many actions to draw at a node (`samples`), how to
    pair them (`joint_actions`), what to try after the first outcomes (`next_round`), and which
    children continue (`continues`). Once the tree has ended, the shape decides at which nodes
    further joint actions are drawn (`further`). AT-GRPO's greedy tree scores each agent's candidate
    actions, one agent after another, and keeps the best candidate. MHGPO's forks draw several
    actions of one agent, which is chosen for each item.

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
    def revisits(self) -> bool:
        """Whether a tree that has ended may grow further."""
        return type(self).further is not Rollout.further

    @property
    def reads_critic(self) -> bool:
        """Whether `further` needs the critic's uncertainty."""
        return False

    def further(
        self,
        visited: Sequence[Node[Any]],
        unsure: Sequence[float | None],
        rng: np.random.Generator,
    ) -> Mapping[int, Mapping[str, int]]:
        """The nodes at which further joint actions are drawn, once all branches of the tree have
        ended: for each, by its index in `visited`, the number of further actions that each acting
        agent draws. Called once per tree; by default, there are none.

        visited: the nodes at which agents have acted, ordered by turn and path. unsure: the
        critic's uncertainty at these nodes; None if it was not measured.
        """
        return {}

    @property
    def group_size(self) -> int:
        """Number of joint actions per node of the first turn; group baselines need at least two
        joint actions."""
        return 1
