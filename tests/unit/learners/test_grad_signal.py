"""The share of a gradient that repeats, from AdamW's moments."""

from __future__ import annotations

import pytest
import torch

from colearn.training.learners.grad_signal import grad_signal

BETAS = (0.9, 0.99)


def share(mean: float, noise: float, steps: int, size: int = 40_000) -> float | None:
    """Of gradients that are `mean` plus independent noise of this deviation."""
    generator = torch.Generator().manual_seed(0)
    weight = torch.nn.Parameter(torch.zeros(size))
    optimizer = torch.optim.AdamW([weight], lr=1e-3, betas=BETAS)
    for _ in range(steps):
        weight.grad = mean + noise * torch.randn(size, generator=generator)
        optimizer.step()
    return grad_signal(optimizer, BETAS, steps)


@pytest.mark.parametrize("steps", [10, 60])
@pytest.mark.parametrize(("mean", "noise"), [(1.0, 1.0), (1.0, 3.0), (2.0, 0.5)])
def test_it_is_the_mean_s_share_of_the_squared_gradient(
    mean: float, noise: float, steps: int
) -> None:
    assert share(mean, noise, steps) == pytest.approx(mean**2 / (mean**2 + noise**2), abs=0.02)


def test_noise_alone_has_none_and_a_constant_gradient_is_all_signal() -> None:
    assert share(0.0, 1.0, 60) == pytest.approx(0.0, abs=0.01)
    assert share(1.0, 0.0, 60) == pytest.approx(1.0, abs=1e-3)  # moments in float32


def test_the_first_steps_say_nothing() -> None:
    assert share(1.0, 1.0, 9) is None
