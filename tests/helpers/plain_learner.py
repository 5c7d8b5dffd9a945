"""A kind of learner of another package, in one file: gradient descent in one process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from colearn.contract import Learner, LearnerKind, MemoryFootprint
from colearn.training.learners.network_learner import NetworkLearner


@dataclass(frozen=True, kw_only=True)
class Plain(LearnerKind):
    """Keeps no state of an optimiser."""

    halved: bool = False
    """Bases are kept in half the precision."""

    def build(self, name: str, network: Any, settings: Any, **sizes: Any) -> Learner:
        return PlainLearner(name, network, settings, **sizes)

    def kept(
        self, trained: int, frozen_bytes: int, settings: Any, *, processes: int
    ) -> MemoryFootprint:
        return MemoryFootprint(weights=4 * trained + frozen_bytes, gradients=4 * trained, adam=0)

    def shard(self, base: Any) -> None:
        if self.halved:
            base.causal.to(torch.bfloat16)


class PlainLearner(NetworkLearner):
    def __init__(self, name: str, network: Any, settings: Any, **sizes: Any) -> None:
        super().__init__(name, network, **sizes)
        self.rate = settings.learning_rate

    def step(self, done: float) -> dict[str, float]:
        with torch.no_grad():
            for weight in self.parameters.values():
                if weight.grad is not None:
                    weight -= self.rate * weight.grad
                    weight.grad = None
        self.steps += 1
        return {"learning_rate": self.rate}
