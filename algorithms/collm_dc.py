"""CoLLM-DC: actor-critic with decentralised critics (Liu et al. 2026, App. B, Alg. 2)."""

from __future__ import annotations

from dataclasses import dataclass

from colearn.critic.decentralized import Decentralized

from ._critic_choice import ActorCritic


@dataclass(frozen=True, kw_only=True)
class CoLLMDC(ActorCritic):
    """Each agent has a critic of its own history: rho grad log pi_i(a_i|h_i) * delta_i with
    delta_i = r + gamma V_i(h_i') - V_i(h_i) (Eq. 2), trained on its square (Eq. 3).

    Wrong when rewards are sparse or horizons long: the other agents' learning moves each critic's
    target, and the paper sees it fail to converge there. Use `collm_cc`.
    """

    def critic(self) -> Decentralized:
        return Decentralized(value=self.value, global_info=self.global_info)
