"""Value loss: squared error (CoLLM Eq. 3 and 5), optionally expectile or clipped."""

from __future__ import annotations

import torch
from torch import Tensor

from colearn.contract import ValueLoss
from colearn.errors import ConfigError

from .policy_gradient import floats


def value_loss(
    values: Tensor, targets: Tensor, old_values: Tensor | None, settings: ValueLoss, total: int
) -> tuple[Tensor, dict[str, float]]:
    """Sum of (target - V)^2 over this micro-batch, divided by the minibatch's `total` scored
    values.

    No gradient flows through targets. A value whose target is NaN (not scored) does not contribute.
    With `settings.expectile` tau, an error has weight 2 tau if the target is above V, and weight 2
    (1 - tau) if the target is below V. V therefore estimates the tau-expectile (the mean for tau =
    1/2). With `settings.clip`, the loss uses the larger of two errors: the error of V, and the
    error of V clamped to `old_values` +- clip (PPO). Metrics are summed over micro-batches;
    explained variance is 1 - value_error / (target_square - target_mean^2).

    Errors: ConfigError for `clip` without `old_values`.
    """
    scored = ~targets.detach().isnan()
    values, targets = (torch.where(scored, numbers, 0.0) for numbers in (values, targets.detach()))
    plain = (values - targets) ** 2

    def weighted(guesses: Tensor) -> Tensor:
        above, below = (targets - guesses).clamp(min=0.0), (guesses - targets).clamp(min=0.0)
        return 2 * (settings.expectile * above**2 + (1 - settings.expectile) * below**2)

    error = weighted(values)
    if settings.clip is not None:
        if old_values is None:
            raise ConfigError("value_loss.clip: needs the values at rollout; leave it out")
        old_values = torch.where(scored, old_values, 0.0)
        near = old_values + (values - old_values).clamp(-settings.clip, settings.clip)
        error = torch.maximum(error, weighted(near))
    loss = settings.coefficient * error.sum() / total
    return loss, floats(
        {
            "value_loss": loss,
            "value_error": plain.sum() / total,
            "target_mean": targets.sum() / total,
            "target_square": (targets**2).sum() / total,
        }
    )
