"""Full weights to a server: which way is taken, what travels by each, and what goes wrong."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
import torch
from safetensors.torch import load_file
from tiny import byte_tokenizer, tiny_model
from torch import Tensor

from colearn.contract import Sampling
from colearn.engines import device_transfer, one_server
from colearn.engines.device_transfer import (
    LinkClient,
    LiveWeights,
    Transfer,
    chosen_transfer,
)
from colearn.engines.kinds import VLLMServer
from colearn.engines.one_server import OneServer
from colearn.engines.server_link import ServerRefused
from colearn.engines.vllm_server_checks import Served
from colearn.errors import ConfigError, ServerLost
from colearn.models.base import Base
from colearn.models.network import Network
from colearn.models.weight_update import weight_update
from colearn.rollout.agents import AgentSpec, ChatFormat


def on(device: str) -> Any:
    """As much of a base as is asked: where it is, and its compute type."""
    return SimpleNamespace(device=torch.device(device), compute=torch.bfloat16)


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: True)


class Link:
    """Records requests; answers as a server of two workers does."""

    url = "http://127.0.0.1:8000"

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.files: list[dict[str, Tensor]] = []
        self.bytes = 0
        self.refused = ""

    def call(self, method: str, path: str, body: Any = None) -> Any:
        self.calls.append((path, body))
        if path == self.refused:
            raise ServerRefused(400, "no such engine")
        if path == "/collective_rpc":
            file = Path(body["kwargs"]["weights_path"]) / "model.safetensors"
            self.bytes = file.stat().st_size
            self.files.append(load_file(file))
        answers = {
            "/version": {"version": "0.33.0"},
            "/get_world_size": {"world_size": 2},
            "/reset_prefix_cache": {"success": True},
        }
        return answers.get(path)

    def lost(self, reason: str) -> NoReturn:
        raise ServerLost(reason)


@pytest.mark.parametrize(
    ("device", "setting", "joins", "way"),
    [
        ("cpu", None, True, "files"),
        ("cuda", None, False, "files"),
        ("cuda", None, True, "nccl"),
        ("cuda:1", None, True, "nccl"),
        ("cuda", "files", True, "files"),
        ("cuda", "nccl", True, "nccl"),
    ],
)
def test_the_way_to_a_server_follows_devices_and_its_engine(
    package: None, device: str, setting: Transfer | None, joins: bool, way: str
) -> None:
    assert chosen_transfer(on(device), setting, joins=joins) == way


def test_without_the_package_here_weights_travel_as_files_and_a_line_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert chosen_transfer(on("cuda"), None, joins=True) == "files"
    assert "files, because vLLM's package is not in the trainer's env" in capsys.readouterr().err
    with pytest.raises(ConfigError, match=r"transfer: vLLM's package is not .*; or set files$"):
        chosen_transfer(on("cuda"), "nccl", joins=True)


@pytest.mark.parametrize(
    ("device", "joins", "message"),
    [
        ("cpu", True, "nccl sends from a CUDA device, and the model is on cpu"),
        ("cuda", False, "the server has no NCCL engine; .*--weight-transfer-config"),
    ],
)
def test_a_way_that_cannot_be_is_one_line(
    package: None, device: str, joins: bool, message: str
) -> None:
    with pytest.raises(ConfigError, match=rf"^run\.generator\.transfer: {message}") as error:
        chosen_transfer(on(device), "nccl", joins=joins)
    assert "\n" not in str(error.value)


@pytest.fixture
def tied() -> Base:
    model = tiny_model("qwen3")
    model.config.tie_word_embeddings = True
    model.tie_weights()
    return Base(model)


def unique_bytes(base: Base, size: int) -> int:
    return size * sum(parameter.numel() for parameter in base.causal.parameters())


def served(link: Link, base: Any, folder: Path) -> OneServer:
    roles = {"ann": AgentSpec(adapter=None, chat=ChatFormat(byte_tokenizer()), sampling=Sampling())}
    server = OneServer(base, roles, VLLMServer(), link.url, folder, starts=False)
    server.link.close()
    server.link = link  # type: ignore[assignment]
    return server


def begin(server: OneServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a CPU, as on a device whose server has NCCL's engine."""
    monkeypatch.setattr(one_server, "check_server", lambda *_: Served("base", 64, "nccl"))
    monkeypatch.setattr(one_server, "chosen_transfer", lambda *_, joins: "nccl" if joins else "")
    server.begin()


def test_a_tied_head_is_written_once_for_a_server_on_a_device(tied: Base, tmp_path: Path) -> None:
    """In bfloat16: two bytes for each parameter, and a header of names."""
    link = Link()
    served(link, on("cuda"), tmp_path).write([weight_update(Network(tied, None), 1)])
    assert sum(one.nbytes for one in link.files[0].values()) == unique_bytes(tied, 2)
    assert link.bytes < unique_bytes(tied, 2) + 16_384
    assert list(tmp_path.iterdir()) == []


def test_on_the_cpu_a_tied_head_comes_under_its_own_name_too(tied: Base, tmp_path: Path) -> None:
    link = Link()
    served(link, tied, tmp_path).write([weight_update(Network(tied, None), 1)])
    (written,) = link.files
    assert torch.equal(written["lm_head.weight"], written["model.embed_tokens.weight"])


class Sender:
    """The package's trainer side: reads names once, and sends live weights in the order of its
    protocol."""

    def __init__(self, client: LinkClient, weights: LiveWeights) -> None:
        self.client, self.weights = client, weights
        self.names = [name for name, _ in weights.named_parameters()]
        self.sent: list[dict[str, Tensor]] = []
        self.fault: Exception | None = None
        client.init_weight_transfer_engine({"packed": True})

    def send_weights(self) -> None:
        self.client.start_weight_update()
        if self.fault is not None:
            raise self.fault
        self.sent.append(dict(self.weights.named_parameters()))
        assert list(self.sent[-1]) == self.names
        self.client.update_weights({"names": self.names})
        self.client.finish_weight_update()

    def shutdown(self) -> None:
        self.sent.clear()


@pytest.fixture
def senders(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Sender]]:
    made: list[Sender] = []

    def engine(client: LinkClient, weights: LiveWeights, *, address: str, workers: int) -> Sender:
        assert (address, workers) == ("127.0.0.1", 2)
        made.append(Sender(client, weights))
        return made[-1]

    monkeypatch.setattr(device_transfer, "trainer_engine", engine)
    monkeypatch.setitem(sys.modules, "vllm", SimpleNamespace(__version__="0.33.0"))
    yield made


def test_weights_sent_by_an_engine_are_the_live_ones_in_the_compute_type(
    tied: Base, tmp_path: Path, senders: list[Sender], monkeypatch: pytest.MonkeyPatch
) -> None:
    link = Link()
    tied.compute = torch.bfloat16
    weights = served(link, tied, tmp_path)
    begin(weights, monkeypatch)
    (sender,) = senders
    (first,) = sender.sent
    assert {one.dtype for one in first.values()} == {torch.bfloat16}
    assert sum(one.nbytes for one in first.values()) == unique_bytes(tied, 2)
    with torch.no_grad():
        tied.causal.get_input_embeddings().weight.mul_(2)
    weights.write([weight_update(Network(tied, None), 1)])
    name = "model.embed_tokens.weight"
    assert torch.equal(sender.sent[1][name], 2 * sender.sent[0][name])
    assert [path for path, _ in link.calls] == [
        "/version",
        "/get_world_size",
        "/init_weight_transfer_engine",
        *2
        * [
            "/start_weight_update",
            "/update_weights",
            "/finish_weight_update",
            "/reset_prefix_cache",
            "/update_weight_version",
        ],
    ]
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_does_not_join_is_lost(
    tied: Base, tmp_path: Path, senders: list[Sender], monkeypatch: pytest.MonkeyPatch
) -> None:
    link = Link()
    link.refused = "/init_weight_transfer_engine"
    with pytest.raises(ServerLost, match=r"does not join a transfer by nccl .*no such engine"):
        begin(served(link, tied, tmp_path), monkeypatch)


def test_a_server_of_another_version_is_one_line(
    tied: Base, tmp_path: Path, senders: list[Sender], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vllm", SimpleNamespace(__version__="0.32.0"))
    with pytest.raises(ConfigError, match=r"has 0\.33\.0, the trainer 0\.32\.0; .*set files$"):
        begin(served(Link(), tied, tmp_path), monkeypatch)
    assert senders == []


def test_a_fault_of_the_engine_is_a_lost_server(
    tied: Base, tmp_path: Path, senders: list[Sender], monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = served(Link(), tied, tmp_path)
    begin(weights, monkeypatch)
    senders[0].fault = RuntimeError("NCCL error:\nunhandled system error")
    update = weight_update(Network(tied, None), 1)
    with pytest.raises(ServerLost, match=r"by nccl \(NCCL error: unhandled system error\)"):
        weights.write([update])
