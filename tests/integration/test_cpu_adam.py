"""DeepSpeed's CPU Adam against torch's AdamW in float64, on the same gradients."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
import torch

pytestmark = [
    pytest.mark.deepspeed,
    pytest.mark.skipif(
        importlib.util.find_spec("deepspeed") is None, reason="needs the deepspeed extra"
    ),
]
RATE, STEPS, WEIGHTS = 1e-3, 20, 10_007


def stepped(optimizer: Any, dtype: torch.dtype, scale: float, decay: float) -> torch.Tensor:
    """Weights about 0.02 after steps along random gradients, with a rate that changes."""
    drawn = torch.Generator().manual_seed(1)
    first = 0.02 * torch.randn(WEIGHTS, generator=drawn)
    weights = torch.nn.Parameter(first.to(dtype))
    adam = optimizer([weights], lr=RATE, betas=(0.9, 0.999), weight_decay=decay)
    for number in range(STEPS):
        weights.grad = (scale * torch.randn(WEIGHTS, generator=drawn)).to(dtype)
        adam.param_groups[0]["lr"] = RATE * (1 + number % 3) / 3
        adam.step()
    return weights.detach().double()


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("scale", [1e-2, 1e-8], ids=["gradients", "gradients of epsilon"])
def test_steps_differ_from_those_in_float64_by_rounding_alone(scale: float, decay: float) -> None:
    """A weight of 0.02 is rounded by up to 9.3e-10 in each of twenty steps, and by more where the
    steps have carried it further. torch's own float32 is as far away."""
    from cpu_adam import CPUAdamW

    exact = stepped(torch.optim.AdamW, torch.float64, scale, decay)
    for optimizer in (torch.optim.AdamW, CPUAdamW):
        assert (stepped(optimizer, torch.float32, scale, decay) - exact).abs().max() < 1e-7
