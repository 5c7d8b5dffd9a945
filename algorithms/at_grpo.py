"""AT-GRPO: agent- and turn-wise groups in a greedy tree (Zhao et al. 2025, Stronger-MAS)."""

from __future__ import annotations

from dataclasses import dataclass

from colearn.advantage.agent_turn_groups import AgentTurn
from colearn.contract import Advantage, Credit, PolicyLoss, Rollout
from colearn.credit.mixed import Mixed
from colearn.loss.policy_gradient import PolicyGradient
from colearn.rollout.greedy_tree import GreedyTree

from ._policy import PolicyAlgorithm


@dataclass(frozen=True, kw_only=True)
class ATGRPO(PolicyAlgorithm):
    """Alg. 1: at every turn each agent draws K candidates from one prompt; r = alpha r_team + r_loc
    (Eq. 3) scores each; A is r standardised within the group (Eq. 1); the best candidate becomes
    the action; Eq. 2 updates each model with the candidates of all agents that it plays.

    Its baselines are the same algorithm with other parts. MAS + GRPO: `rollout.name: parallel`,
    `advantage.name: question`, `credit: {name: invocation, trajectory: 1.0}`, the team's reward
    broadcast over the turns. Parallel sampling (groups of one): `rollout.name: parallel`.

    Wrong when what an action is worth shows later than at once: a critic (`collm_cc`) sees ahead.
    The paper leaves epsilon open (0.2 here).
    """

    rollout: Rollout = GreedyTree()
    credit: Credit = Mixed()
    advantage: Advantage = AgentTurn()
    loss: PolicyLoss = PolicyGradient(clip=0.2)
