"""Gradients that two processes share: a stand-in adds what the other one has."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from colearn.training.learners.local_learner import LocalLearner


class OneOfTwo(LocalLearner):
    """A process whose partner reached the first two of three weights, with gradients of 5."""

    def __init__(self, parameters: dict[str, nn.Parameter]) -> None:
        self.processes, self.parameters = 2, parameters
        self.network: Any = SimpleNamespace(base=SimpleNamespace(device=torch.device("cpu")))

    def _sum(self, value: Tensor) -> Tensor:
        return value + (torch.tensor([1.0, 1.0, 0.0]) if len(value) == 3 else 5.0)


def test_a_gradient_is_the_sum_of_both_processes_and_none_where_neither_has_one() -> None:
    parameters = {name: nn.Parameter(torch.zeros(2)) for name in ("both", "other", "neither")}
    parameters["both"].grad = torch.tensor([1.0, 2.0])
    OneOfTwo(parameters)._share_gradients()
    shared = {n: None if p.grad is None else p.grad.tolist() for n, p in parameters.items()}
    assert shared == {"both": [6.0, 7.0], "other": [5.0, 5.0], "neither": None}
