"""Steps of a `torch.optim` optimiser with clipping and a learning-rate schedule."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from colearn.config import OptimizerSettings
from colearn.contract import Optimizer
from colearn.models.network import Network, is_of_head
from colearn.models.torch_settings import LARGE

from .grad_signal import grad_signal


class TorchOptimizer(Optimizer):
    """Steps a `torch.optim` optimiser, by default one AdamW in float32. Clips the gradient's norm,
    and multiplies the rates of the optimiser's groups by the factor of the schedule."""

    def __init__(
        self,
        name: str,
        network: Network,
        settings: OptimizerSettings,
        wrapped: torch.optim.Optimizer | None = None,
    ) -> None:
        self.name, self.settings = name, settings
        self.forward = network
        self.parameters = list(network.trained().values())
        self.wrapped = adamw(network, settings) if wrapped is None else wrapped
        self.rates = [group["lr"] for group in self.wrapped.param_groups]

    def backward(self, loss: Tensor) -> None:
        """The first backward pass of a step allocates gradients among the activations that it
        frees. On the CPU, the gradients of a large network then move to one tensor, because the C
        library would not reuse the gaps between them for the activations of the next pass."""
        first = all(parameter.grad is None for parameter in self.parameters)
        loss.backward()
        if first and loss.device.type == "cpu":
            gradients = [p for p in self.parameters if p.grad is not None]
            sizes = [parameter.numel() for parameter in gradients]
            if sum(sizes) >= LARGE:
                parts = torch.empty(sum(sizes)).split(sizes)
                for parameter, part in zip(gradients, parts, strict=True):
                    parameter.grad = part.view_as(parameter).copy_(parameter.grad)

    def step(self, number: int, done: float) -> dict[str, float]:
        limit = self.settings.max_grad_norm
        norm = torch.nn.utils.clip_grad_norm_(self.parameters, limit).item()
        check_norm(self.name, number, norm)
        factor = rate_factor(self.settings, number, done)
        for group, base in zip(self.wrapped.param_groups, self.rates, strict=True):
            group["lr"] = base * factor
        self.wrapped.step()
        self.wrapped.zero_grad(set_to_none=True)
        signal = grad_signal(self.wrapped, self.settings.betas, number + 1)
        signals = {} if signal is None else {"grad_signal": signal}
        return {"grad_norm": norm, "learning_rate": self.settings.learning_rate * factor, **signals}

    def state(self) -> dict[str, Any]:
        return self.wrapped.state_dict()

    def restore(self, state: dict[str, Any]) -> None:
        self.wrapped.load_state_dict(state)


def adamw(network: Network, settings: OptimizerSettings) -> torch.optim.AdamW:
    """Return an AdamW for the network's trained parameters, with one group for each run of
    consecutive parameters with equal learning rates."""
    body = settings.learning_rate
    head = settings.head_learning_rate or body
    groups: list[dict[str, Any]] = []
    for name, parameter in network.trained().items():
        rate = head if is_of_head(name) else body
        if not groups or groups[-1]["lr"] != rate:
            groups.append({"params": [], "lr": rate})
        groups[-1]["params"].append(parameter)
    return torch.optim.AdamW(
        groups,
        lr=body,
        betas=settings.betas,
        weight_decay=settings.weight_decay,
        fused=network.base.device.type in ("cpu", "cuda"),  # one kernel per step
    )


def rate_factor(settings: OptimizerSettings, step: int, done: float) -> float:
    """Return the learning-rate factor at optimiser step `step` (counted from 0), after the fraction
    `done` of the training budget. After a warm-up, the rate is constant or decays to zero (linear
    or cosine decay).

    The training budget is a number of environment steps, so the decay does not depend on how many
    optimiser steps an algorithm makes.
    """
    if step < settings.warmup_steps:
        return (step + 1) / settings.warmup_steps
    done = min(max(done, 0.0), 1.0)
    if settings.schedule == "linear":
        return 1.0 - done
    return 1.0 if settings.schedule == "constant" else 0.5 * (1 + math.cos(math.pi * done))


def check_norm(name: str, step: int, norm: float) -> None:
    """Errors: FloatingPointError if the gradient norm of step `step`, counted from 0, is not
    finite."""
    if not math.isfinite(norm):
        raise FloatingPointError(
            f"{name}: the gradient of update {step + 1} is {norm}; lower the learning rate or the "
            "loss's scale"
        )
