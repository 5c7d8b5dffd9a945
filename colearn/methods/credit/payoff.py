"""Payoff credit: every player is credited with its individual payoff only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from colearn.contract.reward_credit import Credit, Rewarded
from colearn.contract.scored import as_number


@dataclass(frozen=True, kw_only=True)
class Payoff(Credit):
    """r_i is the agent's local reward alone. Intended for players of a game, zero-sum or not
    (MARSHAL).

    Wrong when the team shares one reward: every credit is then 0.
    """

    reads = frozenset({"local"})

    def step(self, paid: Rewarded, agents: Sequence[str]) -> Mapping[str, float]:
        return {agent: as_number(paid.local_rewards.get(agent, 0.0)) for agent in agents}
