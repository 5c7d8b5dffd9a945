"""Advantage interface: estimates the advantage of each agent's action from rewards, groups and
values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from colearn.contract.bounds import check_bounds
from colearn.contract.types import Tree

Values = Sequence[float | None]
"""One agent's values by node; None where the critic estimates no value."""


@dataclass(frozen=True, slots=True)
class NodeValues(Sequence[float | None]):
    """One agent's values by node. Subclasses add other kinds of values."""

    by_node: tuple[float | None, ...]

    @overload
    def __getitem__(self, node: int) -> float | None: ...
    @overload
    def __getitem__(self, node: slice) -> tuple[float | None, ...]: ...
    def __getitem__(self, node: int | slice) -> float | tuple[float | None, ...] | None:
        return self.by_node[node]

    def __len__(self) -> int:
        return len(self.by_node)


@dataclass(frozen=True, slots=True)
class TokenValues(NodeValues):
    """State values per token: V(h_t) by node, before the first token of the next action, and V
    before each later token of an action."""

    inside: tuple[tuple[float, ...], ...]
    """For each node: V before every token, except the first, of the agent's action that led to the
    node."""


@dataclass(frozen=True, slots=True)
class CounterfactualValues(NodeValues):
    """Q-values of one agent: Q(h, a_-i, a_i) by the node that the joint action led to (None if the
    agent did not act), and Q(h, a_-i, a') for each of the agent's alternative actions a'."""

    alternatives: tuple[tuple[float, ...], ...]
    """For each node: one Q-value per alternative action."""


AgentValues = Mapping[str, Values]
"""Values by agent name."""

NodeAdvantages = tuple[Mapping[str, float], ...]
"""For each node of a tree: the advantages of the actions that led to the node, by agent ({} at the
root). An action without an entry has no advantage: the loss neither trains on this action nor
counts it."""

TokenAdvantages = tuple[Mapping[str, tuple[float, ...]], ...]
"""Like `NodeAdvantages`, but with one number per token of each action."""

Advantages = Sequence[NodeAdvantages | TokenAdvantages]
"""Advantages of every tree."""

Episodes = Sequence[Tree[Any]]


@dataclass(frozen=True, slots=True)
class AnswerGroup:
    """A group of answers that an advantage compares (answers of one agent in one tree), and the
    prompts of these answers."""

    agent: str
    prompts: tuple[str, ...]
    """The observation before each answer."""
    answers: tuple[str, ...]


class Advantage(ABC):
    """Computes advantages from credited trees, and from values if there is a critic.

    Without a critic, one call receives all episodes of an iteration, so a baseline may compare
    episodes (agent-and-turn groups, heterogeneous groups, sums normalised by role). With a critic
    whose targets are not frozen, the trainer calls the advantage again for each minibatch, since
    the critic changes between minibatches.
    """

    reads: str | None = None
    """The kind of critic value that the advantage needs (a `Critic.value`); None: the advantage
    needs no critic."""
    by_token: bool = False
    """Whether advantages are computed per token instead of per action."""
    reads_future: bool = True
    """Whether the advantage reads rewards or values of later turns. If a rollout shape cuts
    branches, only some siblings have later turns. False: the advantage reads only the credited
    reward of the action itself."""
    minimum_group: int = 1
    """Minimum number of joint actions per node for a useful baseline."""

    def __post_init__(self) -> None:
        """Errors: ConfigError for a setting out of bounds."""
        check_bounds(self)

    def at(self, done: float) -> Advantage:
        """Returns the advantage that applies when the fraction `done` of the training budget has
        been used; by default, `self`."""
        return self

    def weight_group(self, episode: Tree[Any], agent: str) -> Hashable | None:
        """The weight group of an agent's actions in an episode. A model's loss gives every group
        equal weight, regardless of the group's size. None: every action has equal weight."""
        return None

    def answer_groups(self, episodes: Episodes) -> Sequence[AnswerGroup]:
        """Groups of answers whose similarity is reported as a metric; none by default."""
        return ()

    @abstractmethod
    def __call__(
        self, episodes: Episodes, values: Sequence[AgentValues] | None = None
    ) -> Advantages:
        """Advantages of the actions of every tree."""

    def targets(self, episodes: Episodes, values: Sequence[AgentValues]) -> list[AgentValues]:
        """Regression targets of the critic for the same nodes as `values`."""
        raise TypeError(f"{type(self).__name__} has no critic to train")

    def state(self) -> Mapping[str, float]:
        """State of a baseline that persists between updates; saved in checkpoints."""
        return {}

    def restore(self, state: Mapping[str, float]) -> None:
        """The inverse of `state`. A run that begins calls it with an empty `state`, because its
        advantage may be an object of an earlier run."""
        if state:
            raise TypeError(f"{type(self).__name__} remembers nothing")
