"""GRPO on whole trajectories of self-play: MARSHAL's Eq. 2."""

from __future__ import annotations

from dataclasses import dataclass

from colearn.contract import Advantage, Credit, PolicyLoss, Rollout
from colearn.methods.advantage.self_play import SumThenNormalize
from colearn.methods.credit.payoff import Payoff
from colearn.methods.loss.policy_gradient import PolicyGradient
from colearn.rollout.shapes import Chain

from ._policy import PolicyAlgorithm


@dataclass(frozen=True, kw_only=True)
class TrajectoryGRPO(PolicyAlgorithm):
    """Trajectory GRPO: one group per game, with the trajectories of all players (Eq. 2).

    The advantage of every turn is (R - mean(R)) / std(R), where R is the episode return of the
    turn's player.

    Wrong when roles have different expected returns, or when games are long: use `marshal`.
    """

    rollout: Rollout = Chain()
    credit: Credit = Payoff()
    advantage: Advantage = SumThenNormalize(turn_level=False, by_role=False, normalize_std=True)
    loss: PolicyLoss = PolicyGradient(
        ratio="token", reduction="action_mean", clip=0.2, dual_clip=3.0
    )
