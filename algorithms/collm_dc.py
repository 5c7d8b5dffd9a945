"""CoLLM-DC: actor-critic with decentralised critics (Liu et al. 2026, App. B, Alg. 2)."""

from __future__ import annotations

from dataclasses import dataclass

from colearn.advantage.gae import Bootstrap
from colearn.contract import Advantage, Critic, Rollout
from colearn.critic.decentralized import Decentralized
from colearn.rollout.shapes import Chain

from ._policy import PolicyAlgorithm


@dataclass(frozen=True, kw_only=True)
class CoLLMDC(PolicyAlgorithm):
    """Each agent has a critic of its own history: rho grad log pi_i(a_i|h_i) * delta_i with
    delta_i = r + gamma V_i(h_i') - V_i(h_i) (Eq. 2), trained on its square (Eq. 3).

    Wrong when rewards are sparse or horizons long: the other agents' learning moves each critic's
    target, and the paper sees it fail to converge there. Use `collm_cc`.
    """

    rollout: Rollout = Chain()
    critic: Critic | None = Decentralized()
    advantage: Advantage = Bootstrap()
