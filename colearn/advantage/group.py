"""What all group baselines share: joint actions of one history are compared with each other."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from colearn.contract import Advantage, AgentValues, NodeAdvantages
from colearn.types import Tree

from .finish import check, clipped
from .recursion import children
from .turns import equal_turns


@dataclass(frozen=True, kw_only=True)
class GroupBaseline(Advantage):
    """A group is the siblings of one history h_t, never the actions of one turn index: returns
    from different histories do not share a baseline.

    An only child inherits the advantage of the joint action before it. So in `Parallel`, where
    only the root branches, every action of a chain carries G_0 - b(h_0) of its chain: given h_t,
    the rewards before t are constants and b(h_0) does not depend on a_t, so this is Eq. 1 with
    gamma^t G_t and the action-independent baseline b(h_0) - (r_0 + ... + gamma^(t-1) r_(t-1)).

    In `Cross` the group is all joint actions of the history. Siblings that share an agent's action
    make the expected gradient smaller by a constant, and leave its direction.
    """

    discount: float = 1.0
    """gamma."""
    clip: float | None = None
    """Keep each advantage within [-clip, clip]."""
    equal_turns: bool = False
    """Weigh every turn of a tree alike instead of every joint action (`turns.path_weights`)."""

    minimum_group = 2

    def __post_init__(self) -> None:
        check(self.discount, self.clip)

    @abstractmethod
    def compare(self, returns: Sequence[float]) -> Sequence[float]:
        """Advantages of the joint actions of one history, from their returns."""

    def __call__(
        self, trees: Sequence[Tree[Any]], values: Sequence[AgentValues] | None = None
    ) -> list[NodeAdvantages]:
        found = clipped([self._advantages(tree) for tree in trees], self.clip)
        return equal_turns(trees, found) if self.equal_turns else found

    def _advantages(self, tree: Tree[Any]) -> NodeAdvantages:
        returns = tree.returns(self.discount)
        found = [0.0] * len(tree.nodes)
        for node, group in zip(tree.nodes, children(tree), strict=True):
            if len(group) == 1:
                found[group[0]] = found[node.index]
            elif group:
                for index, advantage in zip(
                    group, self.compare([returns[index] for index in group]), strict=True
                ):
                    found[index] = advantage
        return tuple(dict.fromkeys(node.actions, found[node.index]) for node in tree.nodes)
