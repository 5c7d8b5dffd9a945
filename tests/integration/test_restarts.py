"""Restarts: a run that loses a worker goes on by itself to the same weights."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tiny import register, save_model

from colearn.config import load_config
from colearn.runs.record import open_run
from colearn.training.loop import Experiment
from colearn.training.restarts import run_with_restarts


def last_weights(run: Path) -> dict[str, torch.Tensor]:
    checkpoint = open_run(run).checkpoints.choose("last").path
    return load_file(checkpoint / "actor-team" / "weights.safetensors")


def test_a_run_whose_worker_is_killed_goes_on_to_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No iteration is repeated: the loss keeps the state of the last complete one."""
    register(monkeypatch, notes="tiny:Notes")
    model = {"path": save_model(tmp_path / "model"), "learning_rate": 1e-2, "lora": {"rank": 4}}
    config = load_config(
        {
            "task": {"name": "notes", "horizon": 2},
            "algorithm": {"name": "magrpo", "rollout": {"k": 2}},
            "models": {"team": model},
            "agents": {"*": {"model": "team", "sampling": {"max_tokens": 4}}},
            "train": {"episodes": 1, "environment_steps": 1000, "iterations": 3},
            "evaluation": {"episodes": 1, "every": 10},
            "run": {
                **{"device": "cpu", "checkpoint_minutes": None},
                **{"step_workers": 1, "restarts": 1},
            },
        }
    )
    updates: list[int] = []

    def report(progress: Any, metrics: Any) -> None:
        if any(name.startswith("evaluation") for name in metrics):
            return
        updates.append(progress.iteration)
        if updates == [1, 2]:
            for child in multiprocessing.active_children():
                os.kill(child.pid, signal.SIGKILL)
                child.join()

    Experiment(config, tmp_path / "whole").run()
    record = run_with_restarts(config, tmp_path / "lost", started=lambda _: report)
    assert record.status == "finished" and updates == [1, 2, 3]
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if line.startswith("note: restart")] == [
        "note: restart 1 of 1: task.step: a worker process died during a step (killed, out of "
        "memory, or ended by the task)"
    ]
    weights, others = (last_weights(tmp_path / name) for name in ("lost", "whole"))
    assert all(tensor.any() for tensor in weights.values()), "B begins as 0"
    assert weights.keys() == others.keys()
    assert all(torch.equal(tensor, others[name]) for name, tensor in weights.items())
