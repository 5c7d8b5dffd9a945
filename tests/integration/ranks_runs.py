"""Runs of two processes by torchrun on a tiny model, for the tests of what they share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from vllm_cases import byte_tokenizer, qwen

from colearn.runs.record import open_run

HERE = Path(__file__).parent


def write_config(folder: Path, *, lora: bool, generator: dict[str, Any]) -> Path:
    """A config of three iterations, and its model beside it."""
    model = folder / "model"
    if not model.exists():
        qwen(tied=True).save_pretrained(model)
        byte_tokenizer().save_pretrained(model)
    settings: dict[str, Any] = {"path": str(model), "learning_rate": 1e-2}
    if lora:
        settings["lora"] = {"rank": 4, "alpha": 16}
    config = {
        "task": {"name": "tiny:Notes", "horizon": 2},
        "algorithm": {"name": "magrpo", "rollout": {"k": 2}},
        "models": {"team": settings},
        "agents": {"*": {"model": "team", "chat": "plain", "sampling": {"max_tokens": 6}}},
        "train": {"episodes": 2, "environment_steps": 1000, "iterations": 3},
        "evaluation": {"episodes": 2, "every": 10},
        "run": {"generator": generator, "device": "cpu", "checkpoint_minutes": None},
    }
    path = folder / "config.yaml"
    path.write_text(json.dumps(config))
    return path


def train(config: Path, out: Path, *options: str, processes: int) -> tuple[int, str]:
    """The exit status of `colearn train` and what it wrote on stderr."""
    launcher = [*_torchrun(processes), "-m"] if processes > 1 else ["-m"]
    return _run(*launcher, "colearn", "train", str(config), "--out", str(out), *options)


def run_program(file: str, *arguments: str, processes: int) -> tuple[int, str]:
    """The same of a program of this folder."""
    return _run(*_torchrun(processes), str(HERE / file), *arguments)


def _torchrun(processes: int) -> list[str]:
    return ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(processes)]


def _run(*arguments: str) -> tuple[int, str]:
    folders = [HERE, HERE.parent / "helpers", HERE.parents[1]]
    done = subprocess.run(
        [sys.executable, *arguments],
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(map(str, folders)),
        },
        capture_output=True,
        text=True,
        timeout=1800,
    )
    return done.returncode, done.stderr


def weights(out: Path) -> dict[str, torch.Tensor]:
    """Those of the last checkpoint."""
    path = open_run(out).checkpoints.choose("last").path
    return load_file(path / "actor-team" / "weights.safetensors")


def apart(one: Path, other: Path) -> float:
    """The largest difference between the last weights of two runs."""
    ours, theirs = weights(one), weights(other)
    assert ours.keys() == theirs.keys()
    return max(float((ours[name] - tensor).abs().max()) for name, tensor in theirs.items())
