"""Calls to vLLM's package that need hardware are held to its own signatures."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from colearn.generate.device_transfer import LinkClient, LiveWeights, trainer_engine

pytestmark = pytest.mark.vllm
pytest.importorskip("vllm", reason="needs the vllm extra, in an environment of its own")


@pytest.mark.parametrize("way", ["ipc", "nccl"])
def test_the_trainers_side_is_made_as_its_factory_asks(
    way: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vllm.distributed.weight_transfer.base import TrainerInitInfo, VLLMWeightSyncClient
    from vllm.distributed.weight_transfer.factory import WeightTransferTrainerFactory as Factory

    given: dict[str, Any] = {}
    signature = inspect.signature(Factory.trainer_init)

    def trainer_init(*arguments: Any, **named: Any) -> str:
        given.update(signature.bind(*arguments, **named).arguments)
        return "engine"

    monkeypatch.setattr(Factory, "trainer_init", trainer_init)
    client, source = LinkClient(None), LiveWeights(torch.float32)  # type: ignore[arg-type]
    assert trainer_engine(way, client, source, address="10.0.0.1", workers=4) == "engine"
    info = given["init_info"]
    assert isinstance(info, TrainerInitInfo) and info.is_sender and info.packed
    assert info.backend == way and way in Factory._registry
    if way == "nccl":
        assert (info.master_address, info.world_size) == ("10.0.0.1", 5)
    assert isinstance(given["client"], VLLMWeightSyncClient)
    assert given["source"] is source


def test_the_clients_methods_have_the_protocols_parameters() -> None:
    from vllm.distributed.weight_transfer.base import VLLMWeightSyncClient as Protocol

    for name in (
        "init_weight_transfer_engine",
        "start_weight_update",
        "update_weights",
        "finish_weight_update",
    ):
        ours = inspect.signature(getattr(LinkClient, name)).parameters
        assert list(ours) == list(inspect.signature(getattr(Protocol, name)).parameters)


def test_the_clients_requests_are_those_of_the_packages_own() -> None:
    from vllm.distributed.weight_transfer.clients import HTTPVLLMWeightSyncClient

    class Own(HTTPVLLMWeightSyncClient):
        def _post(self, path: str, json: dict[str, Any] | None = None) -> None:
            sent.append((f"/{path}", json))

    class Link:
        def call(self, method: str, path: str, body: Any) -> None:
            sent.append((path, body))

    update = {"names": ["a"], "ipc_handles": [{"uuid": (1, b"x")}]}
    both = []
    for client in (Own("http://a"), LinkClient(Link())):  # type: ignore[arg-type]
        sent: list[Any] = []
        client.init_weight_transfer_engine({"packed": True})
        client.start_weight_update()
        client.update_weights(update)
        client.update_weights([{"names": []}])
        client.finish_weight_update()
        client.finish_weight_update("7")
        both.append(sent)
    assert both[0] == both[1]


def test_a_source_has_what_the_packages_senders_read() -> None:
    from vllm.distributed.weight_transfer.nccl_engine import NCCLTrainerWeightTransferEngine

    weights = {"a": torch.ones(2, 3), "b": torch.zeros(4)}
    source = LiveWeights(torch.bfloat16, weights)
    checked = NCCLTrainerWeightTransferEngine._checked_iter(source, source.metadata())
    sent = dict(checked)
    assert {name: tuple(one.shape) for name, one in sent.items()} == {"a": (2, 3), "b": (4,)}
    assert all(one.dtype == torch.bfloat16 for one in sent.values())
    for engine in weight_transfer_engines():
        assert callable(engine.send_weights) and callable(engine.shutdown)


def weight_transfer_engines() -> list[Any]:
    from vllm.distributed.weight_transfer.ipc_engine import IPCTrainerWeightTransferEngine
    from vllm.distributed.weight_transfer.nccl_engine import NCCLTrainerWeightTransferEngine

    return [IPCTrainerWeightTransferEngine, NCCLTrainerWeightTransferEngine]


def test_the_server_has_the_routes_that_are_asked() -> None:
    from vllm.entrypoints.rl.online.api_router import router

    paths = {route.path for route in router.routes}  # type: ignore[attr-defined]
    assert paths >= {
        "/get_world_size",
        "/init_weight_transfer_engine",
        "/start_weight_update",
        "/update_weights",
        "/finish_weight_update",
        "/update_weight_version",
    }


def test_an_engine_sleeps_and_wakes_by_these_calls() -> None:
    from vllm import LLM
    from vllm.entrypoints.serve.dev.sleep.api_router import router

    assert {route.path for route in router.routes} >= {"/sleep", "/wake_up"}  # type: ignore[attr-defined]
    inspect.signature(LLM.sleep).bind(None, level=1)
    inspect.signature(LLM.wake_up).bind(None)


def test_the_package_has_the_options_that_a_device_needs() -> None:
    from vllm.engine.arg_utils import EngineArgs

    options = inspect.signature(EngineArgs).parameters
    assert options.keys() >= {
        "enable_sleep_mode",
        "weight_transfer_config",
        "gpu_memory_utilization",
        "kv_cache_memory_bytes",
        "distributed_executor_backend",
    }


def test_the_executor_says_which_device_its_worker_takes() -> None:
    from vllm.v1.executor.uniproc_executor import UniProcExecutor

    from colearn.generate.vllm_worker import on_device

    kind = on_device(3)
    assert issubclass(kind, UniProcExecutor)
    executor = object.__new__(kind)
    executor.vllm_config = SimpleNamespace(device_config=SimpleNamespace(device="cuda"))
    assert executor._distributed_args()[1:] == (0, 3)
