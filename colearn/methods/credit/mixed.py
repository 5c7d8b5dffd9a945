"""Mixed credit: a weighted sum of the team reward and the agent's local reward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from colearn.contract.reward_credit import Credit, Rewarded, local_part, weighed


@dataclass(frozen=True, kw_only=True)
class Mixed(Credit):
    """r_i = alpha * r_team + r_i^loc (AT-GRPO, Eq. 3).

    Wrong when local rewards can be earned without helping the team: agents then optimise local
    rewards.
    """

    alpha: float = 1.0
    """Weight of the team's reward."""

    reads = frozenset({"team", "local"})

    def step(self, paid: Rewarded, agents: Sequence[str]) -> Mapping[str, float]:
        team = (self.alpha, paid.reward)
        return {agent: weighed([team, *local_part(paid, agent)]) for agent in agents}
