"""The settings of the policy loss, which every shipped algorithm has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from colearn.loss.policy_gradient import PolicyGradient


@dataclass(frozen=True, kw_only=True)
class PolicySettings:
    """Off by default is what the CoLLM paper has off."""

    discount: float = 1.0
    """gamma."""
    advantage_clip: float | None = None
    """Keep each advantage within +-c; the paper's configs set 0.2 or 0.05."""
    ratio: Literal["sequence", "token"] = "sequence"
    """rho of a whole response, or of each token."""
    reduction: Literal["sample_mean", "token_mean"] = "sample_mean"
    ratio_clip: float | None = None
    """PPO's epsilon."""
    ratio_clip_high: float | None = None
    dual_clip: float | None = None
    kl: float = 0.0
    """Weight of the KL divergence to the reference policy."""
    entropy: float = 0.0

    def policy_loss(self) -> PolicyGradient:
        return PolicyGradient(
            ratio=self.ratio,
            reduction=self.reduction,
            clip=self.ratio_clip,
            clip_high=self.ratio_clip_high,
            dual_clip=self.dual_clip,
            kl=self.kl,
            entropy=self.entropy,
        )
