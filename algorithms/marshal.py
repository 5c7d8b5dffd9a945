"""MARSHAL: self-play with turn-level advantages, normalised by role (Yuan et al. 2025)."""

from __future__ import annotations

from dataclasses import dataclass

from colearn.contract import Advantage, Credit, PolicyLoss, Rollout
from colearn.methods.advantage.self_play import SumThenNormalize
from colearn.methods.credit.payoff import Payoff
from colearn.methods.loss.policy_gradient import PolicyGradient
from colearn.rollout.shapes import Chain

from ._policy import PolicyAlgorithm


@dataclass(frozen=True, kw_only=True)
class MARSHAL(PolicyAlgorithm):
    """MARSHAL: turn-level returns, centred over game and role (Eq. 3).

    Each player receives its own payoff. The advantage of turn k is A_k = R_k - mean(R), where the
    mean is over all turns of the same game and role. The loss is PPO's surrogate with token ratios,
    clip 0.2 and dual clip.

    The paper's ablations set `advantage.turn_level: false` and `advantage.by_role: false`.
    `credit.name: concise` adds the reward for short replies (Eq. 4). `loss.kl: 0.2` sets the
    paper's KL weight. The paper's Table 13 lists lambda = 0.95, but sec. 3.2 of the paper states
    gamma = lambda = 1; Eq. 3 has no lambda.

    Wrong when the first turns decide a long game: the Monte-Carlo return of an early turn carries
    the noise of all later turns. `collm_dc` with `credit.name: payoff` learns a value instead.
    """

    rollout: Rollout = Chain()
    credit: Credit = Payoff()
    advantage: Advantage = SumThenNormalize()
    loss: PolicyLoss = PolicyGradient(
        ratio="token", reduction="action_mean", clip=0.2, dual_clip=3.0
    )
