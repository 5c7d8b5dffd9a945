"""Memory of an optimiser's step: what the dry run counts for it, against a ledger of real steps."""

from __future__ import annotations

import importlib.util

import pytest
from learner_parts import maker, network, sampled
from torch import Tensor

from colearn.config import ModelSettings
from colearn.contract.rows import Outputs, RowBatch
from colearn.estimate.ledger import Ledger
from colearn.training.learners.kinds import DeepSpeed, Local

MODEL = ModelSettings(path="unused")
ZERO = pytest.mark.skipif(
    importlib.util.find_spec("deepspeed") is None, reason="needs the deepspeed extra"
)


def objective(outputs: Outputs, _: RowBatch) -> tuple[Tensor, dict[str, float]]:
    return outputs.logprobs.sum() + outputs.values.sum(), {}


def stepped(kind: str) -> tuple[int, int]:
    """Number of trained weights, and temporary bytes of the second step, which has its moments."""
    learner = maker(kind)("one", network(head=True))
    trained = sum(weight.numel() for weight in learner.parameters.values())  # type: ignore[attr-defined]
    groups = sampled()
    for _ in range(2):
        learner.accumulate(groups, objective)
        with Ledger() as ledger:
            learner.step(0.1)
    return trained, ledger.peak - ledger.live


def test_a_local_step_needs_no_memory_worth_counting() -> None:
    trained, temporary = stepped("local")
    assert Local().kept(trained, 0, MODEL, processes=1).step == 0
    assert temporary < 4 * trained / 100


@ZERO
@pytest.mark.deepspeed
@pytest.mark.parametrize("config", ["zero0", "zero2", "zero3"])
def test_a_step_under_zero_needs_what_is_counted_at_most(
    config: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DS_ACCELERATOR", "cpu")
    trained, temporary = stepped(config)
    counted = DeepSpeed(config=config).kept(trained, 0, MODEL, processes=1).step
    assert counted / 2 < temporary <= 1.01 * counted
