"""Learners with AdamW, the gradients that they hold, and how far apart two gradients are."""

from __future__ import annotations

from typing import Any

import torch

from colearn.config import OptimizerSettings
from colearn.training.learners.learner import NetworkLearner
from colearn.training.learners.torch_optimizer import TorchOptimizer

Gradients = dict[str, torch.Tensor]


def local_learner(
    name: str,
    network: Any,
    settings: OptimizerSettings,
    *,
    token_budget: int = 4096,
    entropy: bool = False,
) -> NetworkLearner:
    """As `run.learner: local` builds it."""
    optimizer = TorchOptimizer(name, network, settings)
    return NetworkLearner(name, network, optimizer, token_budget=token_budget, entropy=entropy)


def gradients(learner: NetworkLearner) -> Gradients:
    """Taken from the learner, which has none afterwards."""
    by_name = {n: p.grad.clone() for n, p in learner.parameters.items() if p.grad is not None}
    for parameter in learner.parameters.values():
        parameter.grad = None
    return by_name


class Recorder(NetworkLearner):
    """Keeps the gradients of a step that it does not take."""

    recorded: Gradients | None = None

    def __init__(self, name: str, network: Any, settings: OptimizerSettings) -> None:
        super().__init__(name, network, TorchOptimizer(name, network, settings), token_budget=4096)

    def step(self, done: float = 0.0) -> dict[str, float]:
        self.recorded = gradients(self)
        return {}


def relative(one: Gradients | None, other: Gradients | None) -> float:
    """Norm of the difference over the norm of the first."""
    assert one is not None and other is not None and one and one.keys() == other.keys()
    gap = sum(float(((one[k] - other[k]).double() ** 2).sum()) for k in one)
    size = sum(float((one[k].double() ** 2).sum()) for k in one)
    assert size > 0
    return float((gap / size) ** 0.5)
