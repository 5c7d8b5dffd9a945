"""What a learner adds to a loss whose processes have to reach every weight together."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from updates import learner_of, value_network

from colearn.config import OptimizerSettings
from colearn.contract.rows import ActionTokens, Mark, Row
from colearn.training.learners.learner import NetworkLearner
from colearn.training.learners.torch_optimizer import TorchOptimizer

ROW = Row(
    tokens=(10, 11, 12, 13),
    pieces=(),
    spans=(ActionTokens(1, 2, 4, 1),),
    marks=(Mark(0, 1),),
    advantages=(1.0, 1.0),
)


class Lockstep(TorchOptimizer):
    collective = True


def with_collective_passes(name: str) -> NetworkLearner:
    network = value_network(1)
    optimizer = Lockstep(name, network, OptimizerSettings(learning_rate=1e-3))
    return NetworkLearner(name, network, optimizer, token_budget=4096)


def summed(outputs: Any, batch: Any) -> tuple[Tensor, dict[str, float]]:
    """Reads no value."""
    return outputs.logprobs.sum(), {}


def test_where_passes_are_collective_a_weight_that_no_loss_reaches_has_a_gradient_of_zero() -> None:
    alone = learner_of("model", value_network(1))
    together = with_collective_passes("model")
    for learner in (alone, together):
        learner.accumulate([ROW], summed)
    assert any(weight.grad is None for weight in alone.parameters.values())
    for name, weight in together.parameters.items():
        expected = alone.parameters[name].grad
        expected = torch.zeros_like(weight) if expected is None else expected
        assert weight.grad is not None
        assert torch.equal(weight.grad, expected)
