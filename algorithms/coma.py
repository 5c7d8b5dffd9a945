"""COMA for language models: a central critic with a counterfactual baseline for each agent."""

from __future__ import annotations

from dataclasses import dataclass

from colearn.contract import Advantage, Critic, Rollout
from colearn.contract.algorithm import ValueLoss
from colearn.methods.advantage.counterfactual import CounterfactualBaseline
from colearn.methods.critic.counterfactual import Counterfactual
from colearn.rollout.shapes import CounterfactualChain

from ._policy import PolicyAlgorithm


@dataclass(frozen=True, kw_only=True)
class COMA(PolicyAlgorithm):
    """COMA: a central critic Q provides a counterfactual baseline for each agent.

    Agent i's gradient is rho grad log pi_i(a_i|h_i) * (G - mean_k Q(h, a_-i, a_i^k)), with the
    importance ratio rho. The critic evaluates K further answers a_i^k, which are never executed.
    The method follows Foerster et al. 2018, "Counterfactual Multi-Agent Policy Gradients", whose
    baseline sums over all actions instead.

    Right for larger teams whose members earn separate parts of the reward: the baseline subtracts
    the other agents' parts, which a V of the history cannot do. Wrong when generation costs more
    than environment steps, since every turn draws 1 + K answers per agent. Wrong for one agent with
    cheap sampling: use `grpo`.
    """

    rollout: Rollout = CounterfactualChain()
    critic: Critic | None = Counterfactual()
    advantage: Advantage = CounterfactualBaseline()
    value_loss: ValueLoss = ValueLoss(frozen_targets=True)
