"""The return without a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from colearn.contract import Advantage, AgentValues, NodeAdvantages
from colearn.types import Tree

from .finish import check, clipped
from .turns import equal_turns


@dataclass(frozen=True, kw_only=True)
class RawReturn(Advantage):
    """A = G_t, the return from turn t on (CoLLM, Eq. 1 with b = 0).

    Wrong when all rewards have one sign: every action is pushed the same way, and the difference
    that matters drowns.
    """

    discount: float = 1.0
    clip: float | None = None
    equal_turns: bool = False
    """Weigh every turn of a tree alike instead of every joint action (`turns.path_weights`)."""

    def __post_init__(self) -> None:
        check(self.discount, self.clip)

    def __call__(
        self, trees: Sequence[Tree[Any]], values: Sequence[AgentValues] | None = None
    ) -> list[NodeAdvantages]:
        found = clipped([self._advantages(tree) for tree in trees], self.clip)
        return equal_turns(trees, found) if self.equal_turns else found

    def _advantages(self, tree: Tree[Any]) -> NodeAdvantages:
        returns = tree.returns(self.discount)
        return tuple(dict.fromkeys(node.actions, returns[node.index]) for node in tree.nodes)
