"""The engine of a vLLM server against a small server of the same interface: what every engine
passes, and servers that lie, restart or are lost."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from engine_cases import *  # noqa: F403 - the tests of every engine, with the `kind` below
from fake_vllm_server import FakeVLLMServer
from served_engine import *  # noqa: F403 - the fixtures
from served_engine import PLAIN, adapted, built_engine, request
from tiny import register
from vllm_cases import byte_tokenizer

from colearn.contract import GeneratorKind, TokenEngine
from colearn.engines.checked_engine import ParityError
from colearn.engines.kinds import VLLMServer
from colearn.engines.vllm_server import VLLMServerEngine
from colearn.engines.vllm_weights import write_model
from colearn.errors import ConfigError, ServerLost
from colearn.models.base import Base
from colearn.models.network import Network
from colearn.models.weight_update import weight_update
from colearn.rollout.agents import AgentSpec


@dataclass(frozen=True)
class Served(GeneratorKind):
    """Builds the generator of a fake server of the base that it is given."""

    folder: Path
    servers: list[FakeVLLMServer] = field(default_factory=list)

    def build(self, base: Base, roles: Mapping[str, AgentSpec]) -> TokenEngine:
        folder = self.folder / str(len(self.servers))
        write_model(folder, base, byte_tokenizer())
        self.servers.append(FakeVLLMServer(folder))
        return VLLMServer(url=self.servers[-1].url).build(base, roles)


@pytest.fixture(scope="module")
def kind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GeneratorKind]:
    served = Served(tmp_path_factory.mktemp("served"))
    yield served
    for server in served.servers:
        server.close()


def test_a_skipped_update_of_an_adapter_is_found(base: Base, server: FakeVLLMServer) -> None:
    engine = built_engine(base, adapted(base, "first", "second"), server)
    server.skip = True
    with torch.no_grad():
        for parameter in base.adapter_parameters("first").values():
            parameter.mul_(1.5)
    with pytest.raises(ParityError, match="agent 'ann'"):
        engine.load([weight_update(Network(base, "first"), 1)])
    engine.close()


def test_a_server_that_restarted_with_other_weights_is_found(
    engine: VLLMServerEngine, server: FakeVLLMServer
) -> None:
    engine.sample([request()])
    server.start()
    with pytest.raises(
        ServerLost, match=r"other weights than the last update's.*--resume"
    ) as error:
        engine.sample([request()])
    assert "\n" not in str(error.value)


def test_a_restarted_server_no_longer_knows_an_adapter(base: Base, server: FakeVLLMServer) -> None:
    engine = built_engine(base, adapted(base, "first"), server)
    server.start()
    with pytest.raises(ServerLost, match="it was restarted"):
        engine.sample([request()])
    engine.close()


def test_an_interruption_cancels_the_requests(
    engine: VLLMServerEngine, server: FakeVLLMServer
) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    server.silent = True
    with pytest.raises(KeyboardInterrupt):
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        engine.sample([request()])
    server.silent = False
    assert len(engine.sample([request()])) == 1


def test_processes_on_several_machines_need_servers_that_all_of_them_reach(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    with pytest.raises(ConfigError, match=r"^run\.generator\.url: missing; .* several machines"):
        VLLMServer().build(base, PLAIN)


def settings(folder: Path, url: str) -> dict[str, Any]:
    return {
        "task": {"name": "notes", "horizon": 2},
        "algorithm": {"name": "magrpo", "rollout": {"k": 2}},
        "models": {
            "team": {
                "path": str(folder),
                "learning_rate": 1e-2,
                "lora": {"rank": 4, "alpha": 16},
            }
        },
        "agents": {"*": {"model": "team", "chat": "plain", "sampling": {"max_tokens": 3}}},
        "train": {"episodes": 1, "environment_steps": 18, "iterations": 2},
        "evaluation": {"episodes": 1, "every": 10},
        "run": {
            "generator": {"name": "vllm_server", "url": url},
            "device": "cpu",
            "checkpoint_minutes": None,
        },
    }


def trained(config: Any, folder: Path, *, resume: bool = False) -> dict[str, torch.Tensor]:
    from colearn.training.loop import Experiment

    experiment = Experiment(config, folder, resume=resume)
    experiment.run()
    (learner,) = experiment.team.learners.values()
    return {name: tensor.clone() for name, tensor in learner.network.state().items()}  # type: ignore[attr-defined]


def test_a_run_whose_server_is_lost_resumes_to_the_same_weights(
    server: FakeVLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from colearn.config import load_config
    from colearn.runs.record import open_run

    register(monkeypatch, notes="tiny:Notes")
    config = load_config(settings(server.folder, server.url))
    expected = trained(config, tmp_path / "whole")
    assert all(tensor.any() for tensor in expected.values()), "B, which begins as 0, has moved"
    asked = server.asked.count("/inference/v1/generate")
    answer = server.on_inference_v1_generate

    def lose(body: Mapping[str, Any]) -> tuple[int, Any]:
        server.gone = server.asked.count("/inference/v1/generate") > asked + 3 * asked // 5
        return answer(body)

    server.on_inference_v1_generate = lose  # type: ignore[method-assign]
    with pytest.raises(ServerLost, match="is gone"):
        trained(config, tmp_path / "lost")
    kept = open_run(tmp_path / "lost")
    lines = [one for one in kept.lines() if one.kind == "update"]
    assert kept.checkpoints.choose("last").iteration == len(lines) > 0
    server.on_inference_v1_generate = answer  # type: ignore[method-assign]
    server.gone = False
    server.start()
    resumed = trained(config, tmp_path / "lost", resume=True)
    assert expected.keys() == resumed.keys()
    assert all(torch.equal(resumed[name], tensor) for name, tensor in expected.items())
