"""COMA for language models: a central critic with a counterfactual baseline for each agent."""

from __future__ import annotations

from dataclasses import dataclass

from colearn.advantage.counterfactual import CounterfactualBaseline
from colearn.contract import Advantage, Critic, Rollout
from colearn.contract.algorithm import ValueLoss
from colearn.critic.counterfactual import Counterfactual
from colearn.rollout.shapes import CounterfactualChain

from ._policy import PolicyAlgorithm


@dataclass(frozen=True, kw_only=True)
class COMA(PolicyAlgorithm):
    """Each agent follows rho grad log pi_i(a_i|h_i) * (G - mean_k Q(h, a_-i, a_i^k)): its K further
    answers a_i^k are read by the central critic and never executed (after Foerster et al. 2018,
    "Counterfactual Multi-Agent Policy Gradients", whose critic sums over all actions).

    Right for larger teams whose members earn parts of the reward: the baseline takes out what the
    others earned, which no V of the history can. Wrong when generation is dearer than environment
    steps, since every turn draws 1 + K answers of each agent; wrong for one agent with cheap
    sampling (`grpo`).
    """

    rollout: Rollout = CounterfactualChain()
    critic: Critic | None = Counterfactual()
    advantage: Advantage = CounterfactualBaseline()
    value_loss: ValueLoss = ValueLoss(frozen_targets=True)
