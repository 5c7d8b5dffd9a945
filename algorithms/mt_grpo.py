"""MT-GRPO: rewards normalised turn by turn (Zeng et al. 2025), in self-play."""

from __future__ import annotations

from dataclasses import dataclass

from colearn.contract import Advantage, Credit, PolicyLoss, Rollout
from colearn.methods.advantage.self_play import TurnByTurn
from colearn.methods.credit.payoff import Payoff
from colearn.methods.loss.policy_gradient import PolicyGradient
from colearn.rollout.shapes import Chain

from ._policy import PolicyAlgorithm


@dataclass(frozen=True, kw_only=True)
class MTGRPO(PolicyAlgorithm):
    """MT-GRPO: the rewards of each turn are normalised over the same turn of all episodes in the
    batch.

    Wrong when episodes differ in length, as MARSHAL's appendix F.1 explains: use `marshal`.
    """

    rollout: Rollout = Chain()
    credit: Credit = Payoff()
    advantage: Advantage = TurnByTurn()
    loss: PolicyLoss = PolicyGradient(
        ratio="token", reduction="action_mean", clip=0.2, dual_clip=3.0
    )
