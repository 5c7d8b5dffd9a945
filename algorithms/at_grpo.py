"""AT-GRPO: agent- and turn-wise groups in a greedy tree (Zhao et al. 2025, Stronger-MAS)."""

from __future__ import annotations

from dataclasses import dataclass

from colearn.contract import Advantage, Credit, PolicyLoss, Rollout
from colearn.methods.advantage.agent_turn_groups import AgentTurn
from colearn.methods.credit.mixed import Mixed
from colearn.methods.loss.policy_gradient import PolicyGradient
from colearn.rollout.greedy_tree import GreedyTree

from ._policy import PolicyAlgorithm


@dataclass(frozen=True, kw_only=True)
class ATGRPO(PolicyAlgorithm):
    """AT-GRPO: groups by agent and turn in a greedy tree (Alg. 1).

    At every turn, each agent draws K candidates from one prompt. The score of each candidate is its
    reward r = alpha r_team + r_loc (Eq. 3). The advantage A is r standardised within the group of K
    candidates (Eq. 1). The candidate with the highest r is executed. Eq. 2 updates each model with
    the candidates of all agents that the model plays. The paper does not state the clip range
    epsilon; the default is 0.2.

    The paper's baselines use other parts. For MAS + GRPO, set `rollout.name: parallel`,
    `advantage.name: question` and `credit: {name: invocation, trajectory: 1.0}`; this credit
    broadcasts the team reward over the turns. For parallel sampling (groups of one), set
    `rollout.name: parallel`.

    Wrong when an action pays off only in later turns: AT-GRPO ignores later rewards, which a critic
    (`collm_cc`) would estimate.
    """

    rollout: Rollout = GreedyTree()
    credit: Credit = Mixed()
    advantage: Advantage = AgentTurn()
    loss: PolicyLoss = PolicyGradient(clip=0.2)
