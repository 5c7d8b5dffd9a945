"""The optimiser's state of a checkpoint under ZeRO: in the CPU's memory, of one process."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from torch import nn

from colearn.training.learners.deepspeed_state import read_state

pytest.importorskip("deepspeed")


class OnDevice:
    """A whole moment on an accelerator."""

    def cpu(self) -> str:
        return "on the CPU"


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("deepspeed.utils.safe_get_full_optimizer_state", lambda *_: OnDevice())
    adam = SimpleNamespace(state={"flat": {"step": 3}}, param_groups=[{"lr": 0.1, "params": []}])
    return SimpleNamespace(optimizer=SimpleNamespace(optimizer=adam))


def test_a_checkpoints_moments_leave_the_device_one_by_one(engine: Any) -> None:
    state = read_state(engine, [nn.Parameter()])
    assert state["state"] == {
        0: {"step": 3, "exp_avg": "on the CPU", "exp_avg_sq": "on the CPU"},
    }
    assert state["param_groups"] == [{"lr": 0.1, "params": [0]}]


def test_a_process_that_writes_nothing_keeps_no_moments(engine: Any) -> None:
    assert read_state(engine, [nn.Parameter()], keep=False)["state"] == {}
