"""A loss without gradient: an error where there is something to train."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from test_collective_passes import ROW, summed, with_collective_passes
from torch import Tensor
from updates import learner_of, value_network

from colearn.errors import ConfigError
from colearn.training.learners.learner import NetworkLearner


def learner(kind: str) -> NetworkLearner:
    return learner_of("ada", value_network(1)) if kind == "alone" else with_collective_passes("ada")


def detached(outputs: Any, batch: Any) -> tuple[Tensor, dict[str, float]]:
    return outputs.logprobs.detach().sum(), {}


def of_values(outputs: Any, batch: Any) -> tuple[Tensor, dict[str, float]]:
    return outputs.values.sum(), {}


@pytest.mark.parametrize("kind", ["alone", "collective"])
@pytest.mark.parametrize("objective", [summed, of_values])
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_model_that_is_trained_while_gradients_are_off_is_an_error(
    kind: str, objective: Any, mode: Any
) -> None:
    message = (
        r"^ada: the loss of update 1, micro-batch 1 has no gradient: code of this run called "
        r"torch\.set_grad_enabled\(False\); use"
    )
    with mode(), pytest.raises(ConfigError, match=message):
        learner(kind).accumulate([ROW], objective)


@pytest.mark.parametrize("kind", ["alone", "collective"])
def test_a_loss_of_ones_own_that_detaches_the_model_is_an_error(kind: str) -> None:
    with pytest.raises(ConfigError, match="has no gradient: the loss is computed from other"):
        learner(kind).accumulate([ROW], detached)


@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad])
def test_rows_without_actions_and_marks_have_none_and_are_no_error(mode: Any) -> None:
    empty = replace(ROW, spans=(), marks=(), advantages=())
    with mode():
        learner("alone").accumulate([empty], summed)


def test_marks_that_an_objective_does_not_read_need_none() -> None:
    learner("alone").accumulate([replace(ROW, spans=(), advantages=())], detached)


def test_rows_are_evaluated_while_gradients_are_off() -> None:
    with torch.no_grad():
        learner("alone").evaluate([ROW])
