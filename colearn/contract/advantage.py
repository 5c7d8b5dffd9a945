"""The advantage: estimates for each agent's action from rewards, groups and values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from colearn.bounds import check_bounds
from colearn.types import Credited

Values = Sequence[float | None]
"""One agent's values, by node; None where its reader gives none."""


@dataclass(frozen=True, slots=True)
class TokenValues(Sequence[float | None]):
    """V at the nodes, as it is without tokens, and V inside of actions."""

    seen: tuple[float | None, ...]
    """By node: V(h_t), before the first token of whatever is said there."""
    inside: tuple[tuple[float, ...], ...]
    """By node: V before each further token of the agent's action that led there."""

    @overload
    def __getitem__(self, node: int) -> float | None: ...
    @overload
    def __getitem__(self, node: slice) -> tuple[float | None, ...]: ...
    def __getitem__(self, node: int | slice) -> float | tuple[float | None, ...] | None:
        return self.seen[node]

    def __len__(self) -> int:
        return len(self.seen)


@dataclass(frozen=True, slots=True)
class CounterfactualValues(Sequence[float | None]):
    """An agent's Q(h, a_-i, a_i) of every edge, and Q(h, a_-i, a') of its alternatives a'."""

    executed: tuple[float | None, ...]
    """By the node that the edge leads to; None where the agent did not act."""
    alternatives: tuple[tuple[float, ...], ...]

    @overload
    def __getitem__(self, node: int) -> float | None: ...
    @overload
    def __getitem__(self, node: slice) -> tuple[float | None, ...]: ...
    def __getitem__(self, node: int | slice) -> float | tuple[float | None, ...] | None:
        return self.executed[node]

    def __len__(self) -> int:
        return len(self.executed)


AgentValues = Mapping[str, Values]
"""By agent name."""

NodeAdvantages = tuple[Mapping[str, float], ...]
"""For each node of a tree, by agent: what the action that led there was worth ({} at the root). An
agent left out has no advantage there: its action is not trained and counts nowhere."""

TokenAdvantages = tuple[Mapping[str, tuple[float, ...]], ...]
"""The same token by token."""

Advantages = Sequence[NodeAdvantages | TokenAdvantages]
"""Of every tree."""

Episodes = Sequence[Credited[Any]]


class Advantage(ABC):
    """A strategy from credited trees (and values, where there is a critic) to advantages.

    Without values all episodes of an iteration come in one call, so baselines may look across
    them (agent-and-turn groups, heterogeneous groups, sums normalised by role). With values the
    call is repeated for every minibatch, since the critic moves between them.
    """

    reads: str | None = None
    """The kind of value that it needs (`Critic.value`); None: it needs no critic."""
    by_token: bool = False
    """It gives an advantage for each token of an action."""
    reads_future: bool = True
    """It reads what comes after an action (returns, values), which only some siblings have where a
    shape cuts branches. False: it reads the action's own credited reward alone."""
    minimum_group: int = 1
    """The fewest joint actions per node for which the baseline carries a signal."""

    def __post_init__(self) -> None:
        """Errors: ConfigError for a setting outside of its bounds."""
        check_bounds(self)

    def at(self, done: float) -> Advantage:
        """The advantage when the share `done` of the training budget is used; most stay as they
        are."""
        return self

    def weight_group(self, episode: Credited[Any], agent: str) -> Hashable | None:
        """The group in which an agent's actions of an episode weigh. The groups of a model weigh
        alike in its loss, however many actions each holds. None: every action weighs alike."""
        return None

    @abstractmethod
    def __call__(
        self, episodes: Episodes, values: Sequence[AgentValues] | None = None
    ) -> Advantages:
        """Advantages of the actions of every tree."""

    def targets(self, episodes: Episodes, values: Sequence[AgentValues]) -> list[AgentValues]:
        """Regression targets of the critic for the same nodes as `values`."""
        raise TypeError(f"{type(self).__name__} has no critic to train")

    def state(self) -> Mapping[str, float]:
        """What a baseline that moves from update to update remembers; it is in the checkpoint."""
        return {}

    def restore(self, state: Mapping[str, float]) -> None:
        """Go on from what `state` gave."""
        if state:
            raise TypeError(f"{type(self).__name__} remembers nothing")
