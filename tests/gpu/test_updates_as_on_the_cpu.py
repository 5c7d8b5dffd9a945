"""Gradients of updates, and passes over large trees, on an accelerator and on the CPU."""

from __future__ import annotations

import pytest
import torch

from colearn.engines.transformers import TransformersEngine
from colearn.models.torch_settings import use_tf32
from tests.rehearsal.decoding_cases import said, team
from tests.rehearsal.tree_cases import large_tree
from tests.rehearsal.update_cases import learner_of, rows_of

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.accelerator.is_available(), reason="no accelerator here"),
]


@pytest.fixture(autouse=True)
def _exact_products():
    before = use_tf32(False)
    yield
    use_tf32(before)


def gradients(device, adapters, forks, values, checkpointing):
    base, specs = team(adapters, "float32", layers=4, max_tokens=12)
    value = "observation" if values else None
    rows = rows_of(TransformersEngine(base, specs), forks, value=value)
    base.to(device)
    torch.manual_seed(0)
    learner = learner_of(base, specs["ada"], values, checkpointing)

    def objective(outputs, batch):
        loss = -1e-3 * outputs.logprobs.sum()
        return (loss + outputs.values.square().sum() if values else loss), {}

    learner.accumulate(rows, objective)
    return {name: weight.grad.cpu() for name, weight in learner.parameters.items()}


@pytest.mark.parametrize("forks", [1, 4], ids=["rows", "packed trees"])
@pytest.mark.parametrize("checkpointing", [False, True], ids=["kept", "recomputed"])
@pytest.mark.parametrize(
    ("adapters", "values"), [(0, False), (2, False), (0, True)], ids=["full", "adapters", "critic"]
)
def test_gradients_are_those_of_the_cpu(adapters, values, checkpointing, forks):
    found, expected = (
        gradients(device, adapters, forks, values, checkpointing) for device in ("cuda", "cpu")
    )
    assert found.keys() == expected.keys()
    largest = max(float(gradient.abs().max()) for gradient in expected.values())
    for name, gradient in expected.items():
        assert float((found[name] - gradient).abs().max()) <= 1e-4 * largest, name


@pytest.mark.parametrize("move", ["before", "after"])
@pytest.mark.parametrize("adapters", [0, 1, 2])
def test_what_is_said_is_what_the_cpu_says(adapters, move):
    device, cpu = said(adapters, "float32", "cuda:0", move), said(adapters, "float32", "cpu")
    assert [tokens for tokens, _ in device] == [tokens for tokens, _ in cpu]
    for (_, found), (_, expected) in zip(device, cpu, strict=True):
        assert found == pytest.approx(expected, abs=1e-4)


def test_a_tree_that_is_too_large_for_a_dense_mask_runs_in_the_compiled_kernel():
    device, cpu = large_tree("cuda", compiled=True), large_tree("cpu")
    assert device["hidden"] == pytest.approx(cpu["hidden"], abs=1e-4)
    for found, expected in zip(device["gradients"], cpu["gradients"], strict=True):
        largest = max(map(abs, expected))
        assert found == pytest.approx(expected, abs=1e-4 * largest)
