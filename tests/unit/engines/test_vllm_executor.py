"""vLLM's worker runs on its model's device, where vLLM itself would take the first one."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
import torch

from colearn.engines.vllm import _placed


class UniProcExecutor:
    """As vLLM's: the method, the rank and the local rank, which is the device."""

    def _distributed_args(self) -> tuple[str, int, int]:
        return "tcp://127.0.0.1:5", 0, 0


@pytest.fixture
def _vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("vllm", "vllm.v1", "vllm.v1.executor"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    module = ModuleType("vllm.v1.executor.uniproc_executor")
    module.UniProcExecutor = UniProcExecutor  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)


@pytest.mark.usefixtures("_vllm")
@pytest.mark.parametrize(("device", "index"), [("cuda:3", 3), ("cuda:0", 0), ("cuda", 0)])
def test_the_worker_runs_on_the_models_device(device: str, index: int) -> None:
    executor = _placed(torch.device(device))["distributed_executor_backend"]
    assert issubclass(executor, UniProcExecutor)
    assert executor()._distributed_args() == ("tcp://127.0.0.1:5", 0, index)


@pytest.mark.usefixtures("_vllm")
def test_two_models_on_two_devices_have_executors_of_their_own() -> None:
    first, second = (
        _placed(torch.device(device))["distributed_executor_backend"]()
        for device in ("cuda:0", "cuda:1")
    )
    assert [one._distributed_args()[2] for one in (first, second)] == [0, 1]


def test_on_a_cpu_vllm_chooses_its_executor() -> None:
    assert _placed(torch.device("cpu")) == {}
