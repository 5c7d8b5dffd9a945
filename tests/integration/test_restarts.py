"""Restarts: a run that loses its server or a worker goes on by itself to the same weights."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from fake_vllm_server import FakeVLLMServer
from safetensors.torch import load_file
from tiny import register
from vllm_cases import byte_tokenizer, qwen

from colearn.config import Config, load_config
from colearn.errors import CheckpointError, ServerLost, WorkerLost
from colearn.runs.record import open_run
from colearn.training.loop import Experiment
from colearn.training.restarts import run_with_restarts


@pytest.fixture(autouse=True)
def _notes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that pays different texts differently, so that weights move."""
    register(monkeypatch, notes="tiny:Notes")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model")
    qwen().save_pretrained(path)
    byte_tokenizer().save_pretrained(path)
    return path


@pytest.fixture
def server(folder: Path) -> Iterator[FakeVLLMServer]:
    fake = FakeVLLMServer(folder)
    yield fake
    fake.close()


def config_of(folder: Path, **run: Any) -> Config:
    model = {"path": str(folder), "learning_rate": 1e-2, "lora": {"rank": 4, "alpha": 16}}
    return load_config(
        {
            "task": {"name": "notes", "horizon": 2},
            "algorithm": {"name": "magrpo", "rollout": {"k": 2}},
            "models": {"team": model},
            "agents": {"*": {"model": "team", "chat": "plain", "sampling": {"max_tokens": 6}}},
            "train": {"episodes": 1, "environment_steps": 1000, "iterations": 4},
            "evaluation": {"episodes": 1, "every": 10},
            "run": {"device": "cpu", "checkpoint_minutes": None, **run},
        }
    )


def restarts_told(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines on restarts; evaluations of one episode have notes of their own."""
    lines = capsys.readouterr().err.splitlines()
    return [line for line in lines if line.startswith("note: restart")]


def last_weights(run: Path) -> dict[str, torch.Tensor]:
    checkpoint = open_run(run).checkpoints.choose("last").path
    return load_file(checkpoint / "actor-team" / "weights.safetensors")


def same(run: Path, other: Path) -> bool:
    """Whether both ended with the same weights, of which none are as they were (B begins as 0)."""
    weights, others = last_weights(run), last_weights(other)
    assert all(tensor.any() for tensor in weights.values())
    return weights.keys() == others.keys() and all(
        torch.equal(tensor, others[name]) for name, tensor in weights.items()
    )


def killing(when: Callable[[int], bool]) -> Callable[[Experiment], Any]:
    """Kills the worker processes after the iterations for which `when` is true."""

    def report(progress: Any, metrics: Any) -> None:
        if when(progress.iteration) and not any(name.startswith("evaluation") for name in metrics):
            for child in multiprocessing.active_children():
                os.kill(child.pid, signal.SIGKILL)
                child.join()

    return lambda experiment: report


def test_a_run_whose_worker_is_killed_goes_on_to_the_same_weights(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    killed: list[int] = []

    def once(iteration: int) -> bool:
        killed.append(iteration)
        return killed.count(2) == 1 and iteration == 2

    config = config_of(folder, step_workers=1, restarts=1)
    Experiment(config, tmp_path / "whole").run()
    record = run_with_restarts(config, tmp_path / "lost", started=killing(once))
    assert record.status == "finished" and record.iterations == 4
    assert restarts_told(capsys) == [
        "note: restart 1 of 1: task.step: a worker process died during a step (killed, out of "
        "memory, or ended by the task)"
    ]
    assert same(tmp_path / "lost", tmp_path / "whole")
    lines = open_run(tmp_path / "lost").lines()
    assert [line.iteration for line in lines if line.kind == "update"] == [1, 2, 3, 4]


@pytest.mark.slow
def test_a_run_that_loses_its_workers_more_often_ends_with_the_loss(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = config_of(folder, step_workers=1, restarts=2)
    with pytest.raises(WorkerLost, match=r"task\.step: a worker process died"):
        run_with_restarts(config, tmp_path / "lost", started=killing(lambda iteration: True))
    assert [line.partition(": task")[0] for line in restarts_told(capsys)] == [
        "note: restart 1 of 2",
        "note: restart 2 of 2",
    ]
    kept = open_run(tmp_path / "lost").checkpoints.choose("last")
    assert kept.iteration == 3, "one iteration was completed in each of three attempts"


def test_without_restarts_a_lost_worker_ends_the_run_and_keeps_its_state(
    folder: Path, tmp_path: Path
) -> None:
    config = config_of(folder, step_workers=1)
    with pytest.raises(WorkerLost):
        run_with_restarts(config, tmp_path / "lost", started=killing(lambda at: at == 2))
    assert open_run(tmp_path / "lost").checkpoints.choose("last").iteration == 2


def test_processes_that_torchrun_started_again_resume_and_those_that_it_starts_first_do_not(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_of(folder)
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "0")
    run_with_restarts(config, tmp_path / "run")
    with pytest.raises(CheckpointError, match="the folder holds a run"):
        run_with_restarts(config, tmp_path / "run")
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    assert run_with_restarts(config, tmp_path / "run").status == "finished"


@pytest.mark.slow
def test_a_server_that_its_supervisor_restarted_is_used_again(
    folder: Path,
    server: FakeVLLMServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    generator = {"name": "vllm_server", "url": server.url}
    config = config_of(folder, restarts=1, generator=generator)
    answer = server.on_inference_v1_generate
    asked: list[str] = []
    dead: list[int] = []

    def counted(body: Mapping[str, Any]) -> tuple[int, Any]:
        if len(asked) in dead:
            server.start()
        asked.append("once")
        return answer(body)

    server.on_inference_v1_generate = counted  # type: ignore[method-assign]
    run_with_restarts(config, tmp_path / "whole")
    dead.append(2 * len(asked) - len(asked) // 3)  # in the last third of the second run
    record = run_with_restarts(config, tmp_path / "lost")
    assert record.status == "finished" and record.iterations == 4
    (told,) = restarts_told(capsys)
    lost = f"note: restart 1 of 1: run.generator: the server at {server.url} has lost this"
    assert told.startswith(lost)
    assert same(tmp_path / "lost", tmp_path / "whole")


def test_a_server_that_stays_away_is_an_error_of_one_line(
    folder: Path, server: FakeVLLMServer, tmp_path: Path
) -> None:
    config = config_of(folder, generator={"name": "vllm_server", "url": server.url})
    server.on_inference_v1_generate = lambda body: (500 if body else 400, {})  # type: ignore[method-assign]
    with pytest.raises(ServerLost, match="cannot generate") as error:
        run_with_restarts(config, tmp_path / "run")
    assert "\n" not in str(error.value)
