"""What all group baselines share: joint actions of one history are compared with each other."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from colearn.contract import Advantage, AgentValues, Episodes, NodeAdvantages
from colearn.types import Credited

from .finish import check_clip, clipped, normalized
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

    clip: float | None = None
    """Keep each advantage within [-clip, clip]."""
    normalize: bool = False
    """After the clip: zero mean, unit deviation over all actions of one agent in the iteration."""
    equal_turns: bool = False
    """Weigh every turn of a tree alike instead of every joint action (`turns.path_weights`)."""

    minimum_group = 2

    def __post_init__(self) -> None:
        check_clip(self.clip)

    @abstractmethod
    def compare(self, returns: Sequence[float]) -> Sequence[float]:
        """Advantages of the joint actions of one history, from their returns."""

    def __call__(
        self, episodes: Episodes, values: Sequence[AgentValues] | None = None
    ) -> list[NodeAdvantages]:
        found = clipped([self._advantages(episode) for episode in episodes], self.clip)
        if self.normalize:
            found = normalized(found)
        return equal_turns(episodes, found) if self.equal_turns else found

    def _advantages(self, episode: Credited[Any]) -> NodeAdvantages:
        tree = episode.tree
        below = tree.below()
        rows: list[dict[str, float]] = [{} for _ in tree.nodes]
        for agent in tree.agents:
            found = self._compared(below, episode.returns(agent))
            for node in tree.nodes:
                if agent in node.actions:
                    rows[node.index][agent] = found[node.index]
        return tuple(rows)

    def _compared(self, below: Sequence[Sequence[int]], returns: Sequence[float]) -> list[float]:
        found = [0.0] * len(returns)
        for node, group in enumerate(below):
            if len(group) == 1:
                found[group[0]] = found[node]
            elif group:
                for index, advantage in zip(
                    group, self.compare([returns[index] for index in group]), strict=True
                ):
                    found[index] = advantage
        return found
