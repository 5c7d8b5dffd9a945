"""Rollout interface: how an episode branches into a tree of joint histories."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from colearn.contract.bounds import check_bounds
from colearn.contract.seeding import Key, derive_rng
from colearn.types import Action, Node, Outcome, Tree

from .engine import TokenAnswer

Uncertainty = Callable[[Sequence[Tree[Any]]], Sequence[Mapping[tuple[int, ...], float]]]
"""Function that measures how unsure a critic is at the nodes of every tree. The results are keyed
by the node's path; a node without an entry was not measured."""


@dataclass(frozen=True)
class FrontierNode:
    """A node from which the tree continues."""

    item: Any
    node: Node[Any]
    keys: tuple[Key, ...]
    """Keys of the shape's random generator at this node."""
    acted: Mapping[str, int] = field(default_factory=dict)
    """Number of earlier actions of each agent; an agent without an entry has taken no action."""
    answers: Mapping[str, TokenAnswer] = field(default_factory=dict)
    """Each agent's last action, with its history; an agent without an entry has not acted."""
    programs: frozenset[str] = frozenset()
    """Agents played by programs, whose actions are not compared."""
    executed: int = 0
    """Number of joint actions that were already executed here. Above 0 only if the shape has chosen
    this node for further joint actions (`Rollout.further`)."""

    def candidates(self, k: int) -> dict[str, int]:
        """Number of actions for each acting agent: `k`, or 1 if a program plays the agent."""
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
        """The shape's random generator at this node, independent of all others."""
        return derive_rng(*self.keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A joint action at a node, and its outcome once it has been executed."""

    number: int
    """Index among the node's children."""
    chosen: Mapping[str, int]
    """Index of the action that each acting agent took."""
    answers: Mapping[str, TokenAnswer] = field(default_factory=dict)
    """The action that each acting agent took."""
    candidate_of: str | None = None
    """See `Round.candidate_of`."""
    alternatives: Mapping[str, tuple[Action, ...]] = field(default_factory=dict)
    """See `Node.alternatives`."""
    outcome: Outcome[Any] | None = None
    rewards: Mapping[str, float] = field(default_factory=dict)
    """The credit of this edge alone, by agent (`Credit.step`); for shapes that compare children."""


@dataclass(frozen=True, slots=True)
class Round:
    """Joint actions that are executed together at a node."""

    joint_actions: Sequence[Mapping[str, int]]
    """Joint actions, as mappings from an agent to the index of the action that this agent takes."""
    candidate_of: str | None = None
    """The agent whose candidate actions are scored while the other agents' actions are fixed; None:
    every joint action is a sample of all agents."""


class Rollout(ABC):
    """A rollout shape: a stateless frozen dataclass that makes the six decisions listed below.

    Other code (the grower) extends the tree from its frontier nodes. The shape decides how many
    trees an item has (`trees`), how many actions to draw at a node (`samples`), how to pair them
    (`joint_actions`), what to try after the first outcomes (`next_round`), and which children
    continue (`continues`). Once the tree has ended, the shape decides at which nodes further joint
    actions are drawn (`further`). AT-GRPO's greedy tree scores each agent's candidate actions, one
    agent after another, and keeps the best candidate. MHGPO's forks draw several actions of one
    agent, which is chosen for each item.
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
    def samples(self, at: FrontierNode) -> Mapping[str, int]:
        """Number of actions that each acting agent draws at a node."""

    @abstractmethod
    def joint_actions(
        self, at: FrontierNode, counts: Mapping[str, int]
    ) -> Sequence[Mapping[str, int]]:
        """The joint actions to execute. A joint action is given by the index of every agent's
        action."""

    @property
    def draws_alternatives(self) -> bool:
        """Whether actions outside all joint actions are kept as `Node.alternatives` for a
        critic."""
        return False

    def next_round(
        self, at: FrontierNode, counts: Mapping[str, int], tried: Sequence[Child]
    ) -> Round | None:
        """The next joint actions to execute, given the outcomes of the joint actions in `tried`;
        None: no further joint actions. By default, all joint actions are executed in one round."""
        return None if tried else Round(self.joint_actions(at, counts))

    @property
    def cuts(self) -> bool:
        """Whether the shape expands only some children, which it selects by immediate credit. The
        other children have no later rewards, so returns and values of siblings cannot be
        compared."""
        return type(self).continues is not Rollout.continues

    def continues(self, at: FrontierNode, children: Sequence[Child]) -> Sequence[int]:
        """Indices of the children to expand further; all by default."""
        return range(len(children))

    @property
    def revisits(self) -> bool:
        """Whether a tree that has ended may grow further."""
        return type(self).further is not Rollout.further

    @property
    def reads_critic(self) -> bool:
        """Whether `further` needs the critic's uncertainty."""
        return False

    def further(
        self, visited: Sequence[FrontierNode], unsure: Sequence[float | None]
    ) -> Sequence[int]:
        """Indices of the nodes at which further joint actions are drawn, once all branches of the
        tree have ended; called once per tree. By default, there are none.

        visited: the nodes at which agents have acted, ordered by turn and path. unsure: the
        critic's uncertainty at these nodes; None if it was not measured. At a chosen node,
        `samples` is called again, with `FrontierNode.executed` above 0.
        """
        return ()

    @property
    def group_size(self) -> int:
        """Number of joint actions per node of the first turn; group baselines need at least two
        joint actions."""
        return 1
