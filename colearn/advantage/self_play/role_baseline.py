"""SPIRAL's advantage: a trajectory's return less a moving baseline of its game and role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from colearn.contract import Advantage, AgentValues, Episodes, NodeAdvantages

from .roles import Actions, by_node, group_of, whole_returns


@dataclass(frozen=True, kw_only=True)
class RoleBaseline(Advantage):
    """b <- decay b + (1 - decay) R, then A = R - b for all turns of the trajectory, with one b for
    each game and role: role-conditioned advantage estimation (SPIRAL).

    The baseline starts at 0 and is kept from update to update; it is in the checkpoint. Wrong when
    episodes are long: every turn has the credit of the whole game.
    """

    decay: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.95
    _baselines: dict[str, float] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __call__(
        self, episodes: Episodes, values: Sequence[AgentValues] | None = None
    ) -> list[NodeAdvantages]:
        """Trajectories move the baseline one after the other, in the order of the episodes."""
        found: Actions = {}
        for place, episode in enumerate(episodes):
            tree = episode.tree
            for agent in tree.agents:
                acted = [node.index for node in tree.nodes if agent in node.actions]
                if not acted:
                    continue
                key = "/".join(group_of(episode, agent, by_role=True))
                whole = whole_returns(episode, agent)
                for leaf in tree.leaves():
                    before = self._baselines.get(key, 0.0)
                    self._baselines[key] = (
                        self.decay * before + (1.0 - self.decay) * whole[leaf.index]
                    )
                for node in acted:
                    found[place, node, agent] = whole[node] - self._baselines[key]
        return by_node(episodes, found)

    def state(self) -> Mapping[str, float]:
        return dict(self._baselines)

    def restore(self, state: Mapping[str, float]) -> None:
        self._baselines.clear()
        self._baselines.update(state)
