"""The engine of a vLLM server against a small server of the same interface: what every engine
passes, and servers that lie, hang, end, restart or lack something."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from asking import token_request
from engine_cases import *  # noqa: F403 - the tests of every engine, with the `kind` below
from engine_cases import SAMPLING
from fake_vllm_server import FakeVLLMServer
from served_kind import Served
from tiny import register
from vllm_cases import byte_tokenizer, qwen

from colearn.config import LoRASettings
from colearn.contract import GeneratorKind, Sampling
from colearn.engines import server_link
from colearn.engines.checked_engine import CheckedEngine, ParityError
from colearn.engines.kinds import VLLMServer
from colearn.engines.vllm_weights import write_model
from colearn.errors import ConfigError, ServerLost
from colearn.models.base import Base
from colearn.models.network import Network
from colearn.models.weight_update import weight_update
from colearn.rollout.agents import AgentSpec, ChatFormat


@pytest.fixture(scope="module")
def kind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GeneratorKind]:
    served = Served(tmp_path_factory.mktemp("served"))
    yield served
    served.close()


VOICES = {
    agent: AgentSpec(
        adapter=None, chat=ChatFormat(byte_tokenizer(), chat="plain"), sampling=sampling
    )
    for agent, sampling in SAMPLING.items()
}
ASKED = [token_request(VOICES, "hot", (5, 6, 7), (1, 2, 3))]


@pytest.fixture
def base() -> Base:
    return Base(qwen())


@pytest.fixture
def server(base: Base, tmp_path: Path) -> Iterator[FakeVLLMServer]:
    write_model(tmp_path / "model", base, byte_tokenizer())
    fake = FakeVLLMServer(tmp_path / "model")
    yield fake
    fake.close()


@pytest.fixture
def generator(base: Base, server: FakeVLLMServer) -> Iterator[CheckedEngine]:
    built = VLLMServer(url=server.url).build(base, VOICES)
    assert isinstance(built, CheckedEngine)
    yield built
    server.silent = server.gone = False
    built.close()


def test_a_skipped_update_of_full_weights_is_found(
    generator: CheckedEngine, server: FakeVLLMServer, base: Base
) -> None:
    server.skip = True
    with torch.no_grad():
        base.causal.lm_head.weight.mul_(1.5)
    with pytest.raises(ParityError, match="nats"):
        generator.load([weight_update(Network(base, None), 1)])


def adapted(base: Base) -> dict[str, AgentSpec]:
    base.model.requires_grad_(False)
    for name in ("first", "second"):
        base.add_adapter(name, LoRASettings(rank=4, alpha=8.0))
        for parameter in base.adapter_parameters(name).values():
            torch.nn.init.normal_(parameter, std=0.2)
    chat = ChatFormat(byte_tokenizer(), chat="plain")
    return {
        agent: AgentSpec(adapter=name, chat=chat, sampling=Sampling(max_tokens=8))
        for agent, name in (("ann", "first"), ("ben", "second"))
    }


def test_two_agents_adapters_live_in_one_server_under_one_name_each(
    base: Base, server: FakeVLLMServer
) -> None:
    generator = VLLMServer(url=server.url).build(base, adapted(base))
    before = set(server.adapters)
    assert len(before) == 2
    assert isinstance(generator, CheckedEngine)
    generator.load([weight_update(Network(base, "first"), 1)])
    after = set(server.adapters)
    assert len(after) == 2 and len(before & after) == 1, "ben's stays, ann's has a new name"
    generator.close()
    assert not server.adapters


def test_a_skipped_update_of_an_adapter_is_found(base: Base, server: FakeVLLMServer) -> None:
    generator = VLLMServer(url=server.url).build(base, adapted(base))
    assert isinstance(generator, CheckedEngine)
    server.skip = True
    with torch.no_grad():
        for parameter in base.adapter_parameters("first").values():
            parameter.mul_(1.5)
    with pytest.raises(ParityError, match="agent 'ann'"):
        generator.load([weight_update(Network(base, "first"), 1)])
    generator.close()


def test_a_server_that_restarted_with_other_weights_is_found(
    generator: CheckedEngine, server: FakeVLLMServer
) -> None:
    generator.generate(ASKED)
    server.start()
    with pytest.raises(ServerLost, match="other weights than the last update's"):
        generator.generate(ASKED)


def test_a_restarted_server_no_longer_knows_an_adapter(base: Base, server: FakeVLLMServer) -> None:
    voices = adapted(base)
    generator = VLLMServer(url=server.url).build(base, voices)
    assert isinstance(generator, CheckedEngine)
    server.start()
    request = token_request(voices, "ann", (5, 6), (1,))
    with pytest.raises(ServerLost, match="it was restarted"):
        generator.generate([request])
    generator.close()


def test_another_run_that_writes_to_the_server_is_found(
    generator: CheckedEngine, server: FakeVLLMServer
) -> None:
    server.version = "another-1"
    with pytest.raises(ServerLost, match="another run writes to it") as error:
        generator.generate(ASKED)
    assert "\n" not in str(error.value) and "--resume" in str(error.value)


def test_a_server_that_ends_in_the_middle_is_one_line(
    generator: CheckedEngine, server: FakeVLLMServer
) -> None:
    server.gone = True
    with pytest.raises(ServerLost, match=r"is gone .*--resume") as error:
        generator.generate(ASKED)
    assert "\n" not in str(error.value)


def test_a_server_that_answers_with_errors_is_one_line(
    generator: CheckedEngine, server: FakeVLLMServer
) -> None:
    server.on_inference_v1_generate = lambda body: (500, {})  # type: ignore[method-assign]
    with pytest.raises(ServerLost, match="cannot generate") as error:
        generator.generate(ASKED)
    assert "\n" not in str(error.value)


def test_a_server_that_hangs_is_found_by_its_health(
    generator: CheckedEngine, server: FakeVLLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_link, "PULSE", 0.1)
    server.silent = True
    with pytest.raises(ServerLost, match="has not answered 2 health checks"):
        generator.generate(ASKED)


def test_an_interruption_cancels_the_requests(
    generator: CheckedEngine, server: FakeVLLMServer
) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    server.silent = True
    with pytest.raises(KeyboardInterrupt):
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        generator.generate(ASKED)
    server.silent = False
    assert len(generator.generate(ASKED)[0]) == 3


@pytest.mark.parametrize("finish", ["abort", "error"])
def test_a_request_that_the_server_ended_is_not_used(
    generator: CheckedEngine, server: FakeVLLMServer, finish: str
) -> None:
    server.statuses["/inference/v1/generate"] = (
        200,
        {"choices": [{"finish_reason": finish, "token_ids": [5], "weight_versions": None}]},
    )
    with pytest.raises(ServerLost, match=f"by itself .{finish}"):
        generator.generate(ASKED)


def test_a_token_without_a_logprob_is_not_used(
    generator: CheckedEngine, server: FakeVLLMServer
) -> None:
    server.statuses["/inference/v1/generate"] = (
        200,
        {
            "choices": [
                {
                    "finish_reason": "stop",
                    "token_ids": [5],
                    "weight_versions": [{"version": server.version, "start": 0, "end": 1}],
                    "logprobs": {"content": [{"token_id": 5, "logprob": -9999.0}]},
                }
            ],
            "usage": {},
        },
    )
    with pytest.raises(ServerLost, match="without their log-probabilities"):
        generator.generate(ASKED)


@pytest.mark.parametrize(
    ("options", "lora", "missing"),
    [
        ({"dev": False}, False, "VLLM_SERVER_DEV_MODE=1"),
        ({"logprobs_mode": "raw_logprobs"}, False, "--logprobs-mode processed_logprobs"),
        ({"cuts": False}, False, r"--worker-extension-cls .*agents\.cut\.sampling\.top_p"),
        ({"lora": False}, True, "--enable-lora --max-loras 2 --max-lora-rank 8"),
        ({"max_loras": 1}, True, r"--max-loras 2 \(it has 1\)"),
        ({"max_lora_rank": 1}, True, r"--max-lora-rank 8 \(it has 1\)"),
    ],
)
def test_a_missing_option_is_named_before_anything_is_loaded(
    base: Base, server: FakeVLLMServer, options: dict[str, Any], lora: bool, missing: str
) -> None:
    server.options |= options
    roles = adapted(base) if lora else VOICES
    with pytest.raises(ConfigError, match=rf"^run\.generator\.url: .*{missing}") as error:
        VLLMServer(url=server.url).build(base, roles)
    assert "\n" not in str(error.value)
    assert not {"/collective_rpc", "/v1/load_lora_adapter"} & set(server.asked) or "cuts" in options


@pytest.mark.parametrize(
    ("path", "option"),
    [
        ("/inference/v1/generate", "--enable-scale-out"),
        ("/v1/load_lora_adapter", "VLLM_ALLOW_RUNTIME_LORA_UPDATING=1"),
    ],
)
def test_a_route_that_is_off_is_named(
    base: Base, server: FakeVLLMServer, path: str, option: str
) -> None:
    server.statuses[path] = (404, {"detail": "Not Found"})
    with pytest.raises(ConfigError, match=option):
        VLLMServer(url=server.url).build(base, adapted(base))


def test_a_server_of_another_model_is_refused(server: FakeVLLMServer) -> None:
    other = qwen()
    other.config.hidden_size = 32
    with pytest.raises(ConfigError, match=r"another model \(hidden_size 64, the trained .* 32\)"):
        VLLMServer(url=server.url).build(Base(other), VOICES)


def test_a_server_with_another_tokenizer_is_refused(base: Base, server: FakeVLLMServer) -> None:
    server.statuses["/tokenize"] = (200, {"tokens": [1, 2, 3]})
    with pytest.raises(ConfigError, match="another tokenizer than agent 'hot'"):
        VLLMServer(url=server.url).build(base, VOICES)


def test_no_server_and_no_vllm_server_are_one_line(base: Base, server: FakeVLLMServer) -> None:
    with pytest.raises(ConfigError, match=r"^run\.generator\.url: no vLLM server at"):
        VLLMServer(url="http://127.0.0.1:9").build(base, VOICES)
    server.statuses["/v1/models"] = (200, {"hello": "there"})
    with pytest.raises(ConfigError, match="is no vLLM server"):
        VLLMServer(url=server.url).build(base, VOICES)


def test_agents_on_one_base_need_one_server(base: Base) -> None:
    urls = {"hot": "http://a", "cut": "http://b", "cold": "http://a"}
    with pytest.raises(ConfigError, match="share one base"):
        VLLMServer(url=urls).build(base, VOICES)
    with pytest.raises(ConfigError, match=r"^run\.generator\.url\.cold: missing"):
        VLLMServer(url={"hot": "http://a", "cut": "http://a"}).build(base, VOICES)


def test_processes_on_several_machines_need_servers_that_all_of_them_reach(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    with pytest.raises(ConfigError, match=r"^run\.generator\.url: missing; .* several machines"):
        VLLMServer().build(base, VOICES)


def test_the_server_says_why_it_did_not_start(base: Base, tmp_path: Path) -> None:
    from colearn.errors import ColearnError

    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'ModuleNotFoundError: No module named vllm' >&2; exit 1\n")
    python.chmod(0o755)
    with pytest.raises(ColearnError, match=r"No module named vllm.*run\.generator\.python"):
        VLLMServer(python=str(python)).build(base, VOICES)


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
        "agents": {"*": {"model": "team", "chat": "plain", "sampling": {"max_tokens": 6}}},
        "train": {"episodes": 1, "environment_steps": 18, "iterations": 3},
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
