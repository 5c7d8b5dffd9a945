"""CoLLM-CC: actor-critic with a centralised critic (Liu et al. 2026, Alg. 1)."""

from __future__ import annotations

from dataclasses import dataclass

from colearn.contract import Advantage, Critic, Rollout
from colearn.methods.advantage.gae import GAE
from colearn.methods.critic.centralized import Centralized
from colearn.rollout.shapes import Chain

from ._policy import PolicyAlgorithm


@dataclass(frozen=True, kw_only=True)
class CoLLMCC(PolicyAlgorithm):
    """CoLLM-CC: one critic reads the joint history in training; execution needs no critic.

    Each agent's gradient is rho grad log pi_i(a_i|h_i) * (r + gamma V(h') - V(h)), with the
    importance ratio rho (Eq. 4). The critic minimises the squared TD error (Eq. 5). The critic
    reads the global information m_t as text; in the paper, m_t can also be numbers that are
    concatenated with the history's representation (sec. 5.1). An update uses whole episodes; the
    paper's Minecraft runs update after each joint action (C.3).

    In the paper, V is the output of a network; set `critic.baseline: none` for this. By default, V
    is a mean return by item and turn plus a share of the network's output.

    Wrong when episodes have one turn and sampling is cheap: a group baseline (`magrpo`) needs no
    second model. Wrong when the joint history exceeds the critic's context window.
    """

    rollout: Rollout = Chain()
    critic: Critic | None = Centralized()
    advantage: Advantage = GAE()
