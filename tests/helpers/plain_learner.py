"""A kind of learner of another package, in one file: gradient descent in one process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from colearn.contract import LearnerKind, MemoryFootprint, Optimizer


@dataclass(frozen=True, kw_only=True)
class Plain(LearnerKind):
    """Keeps no state of an optimiser."""

    def build(self, name: str, network: Any, settings: Any) -> Optimizer:
        return PlainOptimizer(network, settings.learning_rate)

    def kept(
        self, trained: int, frozen_bytes: int, settings: Any, *, processes: int
    ) -> MemoryFootprint:
        return MemoryFootprint(weights=4 * trained + frozen_bytes, gradients=4 * trained, adam=0)


class PlainOptimizer(Optimizer):
    def __init__(self, network: Any, rate: float) -> None:
        self.forward, self.rate = network, rate
        self.parameters = list(network.trained().values())

    def step(self, number: int, done: float) -> dict[str, float]:
        with torch.no_grad():
            for weight in self.parameters:
                if weight.grad is not None:
                    weight -= self.rate * weight.grad
                    weight.grad = None
        return {"learning_rate": self.rate}

    def state(self) -> dict[str, Any]:
        return {"state": {}, "param_groups": []}

    def restore(self, state: dict[str, Any]) -> None:
        """It has none."""
