"""Team credit: every agent receives the joint reward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from colearn.contract.reward_credit import Credit, Rewarded
from colearn.contract.scored import as_number


@dataclass(frozen=True, kw_only=True)
class SharedReward(Credit):
    """r_i = r, as in a Dec-POMDP. Wrong when agents have individual interests: use `Payoff`."""

    reads = frozenset({"team"})

    def step(self, paid: Rewarded, agents: Sequence[str]) -> Mapping[str, float]:
        return dict.fromkeys(agents, as_number(paid.reward))
