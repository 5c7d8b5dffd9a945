"""CoLLM-CC: actor-critic with a centralised critic (Liu et al. 2026, Alg. 1)."""

from __future__ import annotations

from dataclasses import dataclass

from colearn.advantage.gae import Bootstrap
from colearn.contract import Advantage, Critic, Rollout
from colearn.critic.centralized import Centralized
from colearn.rollout.shapes import Chain

from ._policy import PolicyAlgorithm


@dataclass(frozen=True, kw_only=True)
class CoLLMCC(PolicyAlgorithm):
    """One critic reads the joint history in training and is gone in execution: each agent follows
    rho grad log pi_i(a_i|h_i) * (r + gamma V(h') - V(h)) (Eq. 4), the critic its square (Eq. 5).

    Wrong when rewards of one turn are all there is and sampling is cheap: a group baseline
    (`magrpo`) needs no second model. Wrong when the joint stream outgrows the critic's window.
    """

    rollout: Rollout = Chain()
    critic: Critic | None = Centralized()
    advantage: Advantage = Bootstrap()
