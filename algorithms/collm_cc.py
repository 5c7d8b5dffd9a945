"""CoLLM-CC: actor-critic with a centralised critic (Liu et al. 2026, Alg. 1)."""

from __future__ import annotations

from dataclasses import dataclass

from colearn.critic.centralized import Centralized

from ._critic_choice import ActorCritic


@dataclass(frozen=True, kw_only=True)
class CoLLMCC(ActorCritic):
    """One critic reads the joint history in training and is gone in execution: each agent follows
    rho grad log pi_i(a_i|h_i) * (r + gamma V(h') - V(h)) (Eq. 4), the critic its square (Eq. 5).

    Wrong when rewards of one turn are all there is and sampling is cheap: a group baseline
    (`magrpo`) needs no second model. Wrong when the joint stream outgrows the critic's window.
    """

    def critic(self) -> Centralized:
        return Centralized(value=self.value, global_info=self.global_info)
