"""What all advantages on a state value V share: A = r + discount * worth(h') - V(h)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from colearn.contract import Advantage, AgentValues, NodeAdvantages
from colearn.types import Tree

from .expectile import MEAN, check_level, weighted
from .finish import check, clipped, normalized
from .recursion import Values, backed_up


@dataclass(frozen=True, kw_only=True)
class CriticBased(Advantage):
    """Subclasses say what the next history is worth; every edge then has an advantage of its own,
    and the critic's target at a node is the mean over its edges of r + discount * worth.

    Agents without values (not trained) get no advantage.
    """

    discount: float = 1.0
    """gamma."""
    clip: float | None = None
    """Keep each advantage within [-clip, clip] (the paper's "advantage clip"); never the target."""
    normalize: bool = False
    """After the clip: zero mean, unit deviation over all actions of one agent in the call."""
    expectile: float = MEAN
    """tau: before the clip A is weighed by 2 tau above 0 and by 2 (1 - tau) below. With a critic
    trained to the same expectile (`ValueLoss.expectile`) this is risk-seeking above 1/2."""

    uses_values = True

    def __post_init__(self) -> None:
        check(self.discount, self.clip)
        check_level(self.expectile)

    @abstractmethod
    def worth(self, tree: Tree[Any], values: Values) -> list[float]:
        """What each node is worth to one agent, seen from the action that led there."""

    def __call__(
        self, trees: Sequence[Tree[Any]], values: Sequence[AgentValues] | None = None
    ) -> list[NodeAdvantages]:
        if values is None:
            raise TypeError(f"{type(self).__name__} needs the critic's values")
        found = [self._advantages(*pair) for pair in zip(trees, values, strict=True)]
        found = clipped(found, self.clip)
        return normalized(found) if self.normalize else found

    def targets(
        self, trees: Sequence[Tree[Any]], values: Sequence[AgentValues]
    ) -> list[AgentValues]:
        return [
            {
                agent: backed_up(tree, own, self.worth(tree, own), self.discount)
                for agent, own in by_agent.items()
            }
            for tree, by_agent in zip(trees, values, strict=True)
        ]

    def _advantages(self, tree: Tree[Any], values: AgentValues) -> NodeAdvantages:
        rows: list[dict[str, float]] = [{} for _ in tree.nodes]
        for agent, own in values.items():
            worth = self.worth(tree, own)
            for node in tree.nodes:
                if node.parent is None or agent not in node.actions:
                    continue
                before = own[node.parent]
                assert before is not None, "a critic gives a value wherever its agent acts"
                error = node.reward + self.discount * worth[node.index] - before
                rows[node.index][agent] = weighted(error, self.expectile)
        return tuple(rows)
