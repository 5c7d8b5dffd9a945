"""Gradients as learners hold them, and how far apart two are."""

from __future__ import annotations

import torch

from colearn.training.learners.local_learner import LocalLearner

Gradients = dict[str, torch.Tensor]


def gradients(learner: LocalLearner) -> Gradients:
    """Taken from the learner, which has none afterwards."""
    by_name = {n: p.grad.clone() for n, p in learner.parameters.items() if p.grad is not None}
    learner.optimizer.zero_grad()
    return by_name


class Recorder(LocalLearner):
    """Keeps the gradients of a step that it does not take."""

    recorded: Gradients | None = None

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
