"""A real vLLM server as an engine of tokens: what every engine passes, and what it does alone."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from engine_cases import *  # noqa: F403 - the tests of every engine, with the `kind` below
from safetensors.torch import load_file
from tiny import register
from vllm_cases import byte_tokenizer, qwen

from colearn.config import Config, load_config
from colearn.contract import GeneratorKind
from colearn.engines.kinds import VLLMServer
from colearn.engines.vllm_server import VLLMServerEngine
from colearn.errors import ServerLost
from colearn.runs.record import open_run
from colearn.training.loop import Experiment
from colearn.training.restarts import run_with_restarts

pytestmark = pytest.mark.vllm
pytest.importorskip("vllm", reason="needs the vllm extra, in an environment of its own")


@pytest.fixture(scope="module")
def kind() -> GeneratorKind:
    return VLLMServer(cache_gib=0.2, max_rows=64, max_length=4096, start_minutes=60)


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that pays different texts differently, so that weights move."""
    register(monkeypatch, notes="tiny:Notes")


def config_of(folder: Path, lora: bool) -> Config:
    model: dict[str, Any] = {"path": str(folder), "learning_rate": 1e-2}
    if lora:
        model["lora"] = {"rank": 4, "alpha": 16}
    agents = {"chat": "plain", "sampling": {"max_tokens": 48}}
    return load_config(
        {
            "task": {"name": "notes", "horizon": 2},
            "algorithm": {"name": "magrpo", "rollout": {"k": 2}},
            "models": {"*" if lora else "team": model},
            "agents": {"*": agents if lora else agents | {"model": "team"}},
            "train": {"episodes": 2, "environment_steps": 1000, "iterations": 3},
            "evaluation": {"episodes": 1, "every": 10},
            "run": {
                "generator": {
                    "name": "vllm_server",
                    "cache_gib": 0.2,
                    "max_length": 2048,
                    "start_minutes": 60,
                },
                "device": "cpu",
                "checkpoint_minutes": None,
            },
        }
    )


def weights_of(experiment: Experiment) -> dict[str, torch.Tensor]:
    return {
        f"{key}.{name}": tensor.clone()
        for key, learner in experiment.team.learners.items()
        for name, tensor in learner.weights().items()
    }


def in_third_rollout(
    monkeypatch: pytest.MonkeyPatch, act: Callable[[VLLMServerEngine], None]
) -> None:
    """Acts once, as the first request of an episode is sent after two updates of weights."""
    write, singles = VLLMServerEngine.write, VLLMServerEngine.singles
    versions: list[int] = []
    acted: list[bool] = []

    def written(engine: VLLMServerEngine, updates: Any) -> None:
        write(engine, updates)
        versions.append(len(updates))

    def asked(engine: VLLMServerEngine, request: Any) -> Any:
        if len(versions) == 2 and not acted:
            acted.append(True)
            act(engine)
        return singles(engine, request)

    monkeypatch.setattr(VLLMServerEngine, "write", written)
    monkeypatch.setattr(VLLMServerEngine, "singles", asked)


@pytest.mark.parametrize("lora", [True, False], ids=["two adapters", "full"])
def test_a_server_killed_in_a_rollout_ends_the_run_which_resumes_to_the_same_weights(
    lora: bool, tmp_path: Path, notes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "model"
    qwen().save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    config = config_of(folder, lora)

    def trained(name: str, *, resume: bool = False) -> dict[str, torch.Tensor]:
        experiment = Experiment(config, tmp_path / name, resume=resume)
        assert len({id(generator) for generator in experiment.team.engines}) == 1
        assert len(experiment.team.learners) == (2 if lora else 1)
        before = weights_of(experiment)
        try:
            record = experiment.run()
        finally:
            for generator in experiment.team.engines:
                generator.close()
        assert record.status == "finished" and record.iterations == 3
        after = weights_of(experiment)
        assert not any(torch.equal(before[key], tensor) for key, tensor in after.items())
        return after

    def kill(engine: VLLMServerEngine) -> None:
        assert engine.servers[0].process is not None
        os.killpg(engine.servers[0].process._keeper.pid, signal.SIGKILL)

    in_third_rollout(monkeypatch, lambda engine: threading.Timer(0.05, kill, (engine,)).start())
    with pytest.raises(ServerLost, match=r"is gone .*--resume") as error:
        trained("lost")
    assert "\n" not in str(error.value)
    lines = (tmp_path / "lost" / "metrics.jsonl").read_text().splitlines()
    updates = [line for line in map(json.loads, lines) if line["kind"] == "update"]
    assert [line["iteration"] for line in updates] == [1, 2], "lost in the third rollout"
    resumed = trained("lost", resume=True)
    expected = trained("whole")
    assert resumed.keys() == expected.keys()
    apart = max(float((resumed[key] - weight).abs().max()) for key, weight in expected.items())
    assert apart < 1e-5


def test_a_killed_server_is_started_again_and_the_run_goes_on_to_the_same_weights(
    tmp_path: Path,
    notes: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "model"
    qwen().save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    config = config_of(folder, lora=True)
    config = config.model_copy(update={"run": config.run.model_copy(update={"restarts": 1})})
    run_with_restarts(config, tmp_path / "whole")

    def kill(engine: VLLMServerEngine) -> None:
        assert engine.servers[0].process is not None
        os.killpg(engine.servers[0].process._keeper.pid, signal.SIGKILL)

    in_third_rollout(monkeypatch, kill)
    record = run_with_restarts(config, tmp_path / "lost")
    assert record.status == "finished" and record.iterations == 3
    assert capsys.readouterr().err.count("note: restart 1 of 1: run.generator: the server at") == 1
    for key in ("actor-ada", "actor-ben"):
        last = [open_run(tmp_path / run).checkpoints.choose("last") for run in ("lost", "whole")]
        lost, whole = (load_file(one.path / key / "weights.safetensors") for one in last)
        assert all(tensor.any() for tensor in whole.values()), "B begins as 0"
        assert max(float((lost[name] - one).abs().max()) for name, one in whole.items()) < 1e-5
