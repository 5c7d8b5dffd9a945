"""MARSHAL: self-play with turn-level advantages, normalised by role (Yuan et al. 2025)."""

from __future__ import annotations

from dataclasses import dataclass

from colearn.advantage.self_play.sum_then_normalize import SumThenNormalize
from colearn.contract import Advantage, Credit, PolicyLoss, Rollout
from colearn.credit.payoff import Payoff
from colearn.loss.policy_gradient import PolicyGradient
from colearn.rollout.shapes import Chain

from ._policy import PolicyAlgorithm


@dataclass(frozen=True, kw_only=True)
class MARSHAL(PolicyAlgorithm):
    """Every player is paid its own payoff; A_k = R_k - mean(R) over its game and role (Eq. 3),
    under PPO's surrogate with clip 0.2 and dual clip, ratios by token.

    Its ablations: `advantage.turn_level: false` and `advantage.by_role: false`. The reward for
    short replies (Eq. 4) is `credit.name: concise`; the paper's KL weight of 0.2 is `loss.kl`.

    Wrong when the first turns of a long game decide it: Monte-Carlo returns of an early turn carry
    the noise of all later ones. `collm_cc` with `credit.name: payoff` learns a value instead.
    """

    rollout: Rollout = Chain()
    credit: Credit = Payoff()
    advantage: Advantage = SumThenNormalize()
    loss: PolicyLoss = PolicyGradient(
        ratio="token", reduction="action_mean", clip=0.2, dual_clip=3.0
    )
