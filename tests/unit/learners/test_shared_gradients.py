"""Gradients that two processes share: a stand-in adds what the other one has."""

from __future__ import annotations

import pytest
import torch
from local_learners import local_learner
from torch import Tensor
from updates import value_network

from colearn.config import OptimizerSettings
from colearn.contract.rows import ActionTokens, Row


def test_a_gradient_is_the_sum_of_both_processes_and_none_where_neither_has_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The partner has reached the first two of three weights, with gradients of 5."""

    def with_partner(value: Tensor) -> None:
        value += torch.tensor([1.0, 1.0, 0.0]) if len(value) == 3 else 5.0

    learner = local_learner("one", value_network(1), OptimizerSettings())
    parameters = {n: torch.nn.Parameter(torch.zeros(2)) for n in ("both", "other", "neither")}
    parameters["both"].grad = torch.tensor([1.0, 2.0])
    learner.processes, learner.parameters = 2, parameters
    learner.optimizer.step = lambda *_: {}
    monkeypatch.setattr(torch.distributed, "all_reduce", with_partner)
    learner.step(0.0)
    shared = {n: None if p.grad is None else p.grad.tolist() for n, p in parameters.items()}
    assert shared == {"both": [6.0, 7.0], "other": [5.0, 5.0], "neither": None}


def test_a_process_for_which_a_round_has_no_rows_leaves_them_to_the_others() -> None:
    """One row for two processes: the second runs no pass, and has the first one's results."""
    learner = local_learner("one", value_network(1), OptimizerSettings())
    learner.processes, learner.rank = 2, 1
    told = ({"loss": 2.0}, {0: (5.0,)}, None)
    learner._gathered = lambda own: [told, own]
    row = Row(tokens=(10, 11), pieces=(), spans=(ActionTokens(1, 1, 2, 0),), advantages=(1.0,))
    accumulated = learner.accumulate([row], lambda outputs, batch: pytest.fail("its part is none"))
    assert (accumulated.metrics, accumulated.values) == told[:2]
    assert all(weight.grad is None for weight in learner.parameters.values())
