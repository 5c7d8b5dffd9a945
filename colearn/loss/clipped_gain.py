"""PPO ratio clipping with an optional upper bound (DAPO) and dual clip."""

from __future__ import annotations

import torch
from torch import Tensor


def clipped_gain(
    plain: Tensor,
    ratio: Tensor,
    advantages: Tensor,
    *,
    low: float | None,
    high: float | None,
    dual: float | None,
) -> Tensor:
    """min(rho A, clip(rho, 1 - low, 1 + high) A) for tensors of equal shape; `plain` is rho A.

    With `dual` c > 1 the gain of an action with A < 0 is at least c A (Ye et al. 2020).
    """
    kept = plain
    if low is not None and high is not None:
        kept = torch.minimum(plain, ratio.clamp(1.0 - low, 1.0 + high) * advantages)
    if dual is not None:
        floor = torch.maximum(kept, dual * advantages)
        kept = torch.where(advantages < 0, floor, kept)
    return kept
