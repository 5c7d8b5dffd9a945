"""CoLLM-DC: actor-critic with decentralised critics (Liu et al. 2026, App. B, Alg. 2)."""

from __future__ import annotations

from dataclasses import dataclass

from colearn.contract import Advantage, Critic, Rollout
from colearn.methods.advantage.gae import GAE
from colearn.methods.critic.decentralized import Decentralized
from colearn.rollout.shapes import Chain

from ._policy import PolicyAlgorithm


@dataclass(frozen=True, kw_only=True)
class CoLLMDC(PolicyAlgorithm):
    """CoLLM-DC: each agent has a critic that reads only the agent's own history.

    Agent i's gradient is rho grad log pi_i(a_i|h_i) * delta_i with the importance ratio rho and
    delta_i = r + gamma V_i(h_i') - V_i(h_i) (Eq. 2). Agent i's critic minimises delta_i^2 (Eq. 3).
    In the paper, V_i is the output of a network; set `critic.baseline: none` for this. By default,
    V_i is a mean return by item and turn plus a share of the network's output.

    Wrong when rewards are sparse or horizons are long: the other agents' learning shifts each
    critic's target, and the paper reports that CoLLM-DC fails to converge in this case. Use
    `collm_cc`.
    """

    rollout: Rollout = Chain()
    critic: Critic | None = Decentralized()
    advantage: Advantage = GAE()
