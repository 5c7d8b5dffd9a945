"""The advantage: what each agent's action was worth, from rewards, groups and values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from colearn.types import Tree

AgentValues = Mapping[str, Sequence[float | None]]
"""By agent name: a value for each node of a tree, None where its reader gives none."""

NodeAdvantages = tuple[Mapping[str, float], ...]
"""For each node of a tree, by agent: what the action that led there was worth ({} at the root)."""


class Advantage(ABC):
    """A stateless strategy from trees (and values, where there is a critic) to advantages.

    All trees of an iteration come in one call when `uses_values` is False, so baselines may look
    across episodes (agent-and-turn groups, heterogeneous groups, sums normalised by role).
    With values the call is repeated for every minibatch, since the critic moves between them.
    """

    uses_values: bool = False
    minimum_group: int = 1
    """The fewest joint actions per node for which the baseline carries a signal."""

    @abstractmethod
    def __call__(
        self, trees: Sequence[Tree[Any]], values: Sequence[AgentValues] | None = None
    ) -> list[NodeAdvantages]:
        """Advantages of every action of every tree."""

    def targets(
        self, trees: Sequence[Tree[Any]], values: Sequence[AgentValues]
    ) -> list[AgentValues]:
        """Regression targets of the critic for the same nodes as `values`."""
        raise TypeError(f"{type(self).__name__} has no critic to train")
