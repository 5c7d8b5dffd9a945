"""Estimates the fraction of a gradient that repeats from step to step, from AdamW's moments."""

from __future__ import annotations

import torch
from torch import Tensor

ENOUGH = 10
"""Number of steps before which the moments are too noisy to use."""


@torch.no_grad()
def grad_signal(
    optimizer: torch.optim.Optimizer, betas: tuple[float, float], steps: int
) -> float | None:
    """Estimate |E g|^2 / E |g|^2 for the clipped gradients g of `steps` steps. The ratio is 1 for
    gradients without noise and 0 for pure noise. Synchronises with the device once.

    The first moment is a weighted mean of gradients with weights w. The noise variance of the first
    moment is therefore sum w^2 times the noise variance of a single gradient. The second moment is
    a mean of squared gradients. The result is None in three cases: in the first steps, without a
    first moment in the optimiser, and without a gradient. If several steps use the same batch, the
    noise of this batch counts as signal.
    """
    parameters = (parameter for group in optimizer.param_groups for parameter in group["params"])
    states = [
        optimizer.state[parameter]
        for parameter in parameters
        if "exp_avg" in optimizer.state.get(parameter, {})
    ]
    if not states or betas[0] == 0.0 or steps < ENOUGH:
        return None
    first, second = betas[0] ** steps, betas[1] ** steps
    totals = torch.stack(
        [
            _total([state["exp_avg"] for state in states], 2.0),
            _total([state["exp_avg_sq"] for state in states], 1.0),
        ]
    ).tolist()
    squares, mean_square = totals[0] / (1 - first) ** 2, totals[1] / (1 - second)
    if mean_square <= 0:
        return None
    noise = (1 - betas[0]) / (1 + betas[0]) * (1 + first) / (1 - first)
    return min(1.0, max(0.0, (squares / mean_square - noise) / (1 - noise)))


def _total(tensors: list[Tensor], power: float) -> Tensor:
    """Sum of |x|^power over all tensors."""
    norms = torch.stack([norm.float() for norm in torch._foreach_norm(tensors, power)])
    return (norms**power).sum()
