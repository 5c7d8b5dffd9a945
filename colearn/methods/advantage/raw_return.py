"""Returns as advantages, without a baseline (REINFORCE)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from colearn.contract import Advantage, AgentValues, Episodes, NodeAdvantages
from colearn.contract.bounds import Clip
from colearn.contract.types import Tree

from .finish import clipped, scored
from .turn_weights import equal_turns


@dataclass(frozen=True, kw_only=True)
class RawReturn(Advantage):
    """A = G_t, the return from turn t on (CoLLM, Eq. 1 with b = 0).

    Wrong when all rewards have the same sign: every update then raises (or lowers) the probability
    of all sampled actions, and differences between returns are small compared with the returns'
    mean.
    """

    clip: Clip | None = None
    """Bound: each advantage is clipped to [-clip, clip]."""
    equal_turns: bool = False
    """Whether to give equal weight to every turn of a tree. By default, every joint action has
    equal weight (`turn_weights.path_weights`)."""

    def __call__(
        self, episodes: Episodes, values: Sequence[AgentValues] | None = None
    ) -> list[NodeAdvantages]:
        advantages = scored([self._advantages(episode) for episode in episodes])
        advantages = clipped(advantages, self.clip)
        return equal_turns(episodes, advantages) if self.equal_turns else advantages

    def _advantages(self, episode: Tree[Any]) -> NodeAdvantages:
        returns = {agent: episode.returns_of(agent) for agent in episode.agents}
        return tuple(
            {agent: returns[agent][node.index] for agent in node.actions} for node in episode.nodes
        )
