"""How much of a gradient repeats from step to step, from AdamW's own moments."""

from __future__ import annotations

import torch
from torch import Tensor

ENOUGH = 10
"""Steps before which the moments say little."""


@torch.no_grad()
def grad_signal(
    optimizer: torch.optim.Optimizer, betas: tuple[float, float], steps: int
) -> float | None:
    """|E g|^2 / E |g|^2 of the gradients of `steps` steps, as clipped: 1 without noise, 0 for noise
    alone. It waits for the device once.

    The first moment is a mean of gradients with weights w, whose noise has sum w^2 of a gradient's;
    the second is a mean of their squares. None in the first steps, without a first moment, and
    without any gradient. Steps on one batch count its noise as signal.
    """
    parameters = (one for group in optimizer.param_groups for one in group["params"])
    states = [
        optimizer.state[one] for one in parameters if "exp_avg" in optimizer.state.get(one, {})
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
