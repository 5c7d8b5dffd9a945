"""Whole runs under ZeRO by two processes: the weights of the local learner in one process."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file
from tiny import save_model

from colearn.runs.record import open_run

pytestmark = [
    pytest.mark.deepspeed,
    pytest.mark.skipif(
        importlib.util.find_spec("deepspeed") is None, reason="needs the deepspeed extra"
    ),
]
HERE = Path(__file__).parent
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc_per_node")
WEIGHTS: dict[str, Any] = {"full": None, "lora": {"rank": 4, "alpha": 16}}
UPDATES = 6


def settings(model: str, weights: str) -> dict[str, Any]:
    """A team with a critic; an iteration has four episodes of two joint actions.

    Beside item means the targets of a new value head have the mean zero, and Adam makes a step of
    the bias out of the sum's rounding: with other micro-batches, one process ends 1e-2 away, too.
    """
    network = {"path": model, "learning_rate": 1e-3, "max_grad_norm": 0.5, "lora": WEIGHTS[weights]}
    return {
        "task": {"name": "tiny:Notes", "horizon": 2},
        "algorithm": {"name": "collm_cc"},
        "models": {"*": network},
        "critic": {**network, "baseline": "none"},
        "agents": {"*": {"sampling": {"max_tokens": 5}}},
        "train": {"episodes": 4, "environment_steps": 8 * UPDATES},
        "evaluation": {"episodes": 1, "every": 10**6},
        "run": {"device": "cpu"},
    }


def train(folder: Path, model: str, weights: str, *sets: str, processes: int = 1) -> Path:
    """A run by the command line."""
    config = folder.with_suffix(".yaml")
    config.write_text(yaml.safe_dump(settings(model, weights)))
    return command(folder, str(config), *(f"--set={one}" for one in sets), processes=processes)


def command(folder: Path, *arguments: str, processes: int = 1) -> Path:
    """`colearn train` for a run's folder."""
    launcher = (*TORCHRUN, str(processes)) if processes > 1 else ()
    environment = os.environ | {
        "DS_ACCELERATOR": "cpu",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(HERE.parent / "helpers"), str(HERE.parents[1])]),
    }
    done = subprocess.run(
        [sys.executable, *launcher, "-m", "colearn", "train", *arguments, "--out", str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
    return folder


def zero(stage: str) -> tuple[str, ...]:
    return ("run.learner.name=deepspeed", f"run.learner.config={stage}")


def last_weights(run: Path) -> dict[str, torch.Tensor]:
    files = open_run(run).checkpoints.choose("last").path.glob("*/weights.safetensors")
    return {f"{f.parent.name}/{k}": weight for f in files for k, weight in load_file(f).items()}


def apart(run: Path, other: Path) -> float:
    """The largest difference between the last weights of two runs."""
    weights, others = last_weights(run), last_weights(other)
    assert weights.keys() == others.keys() and weights
    return max(float((weights[name] - others[name]).abs().max()) for name in weights)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_model(tmp_path_factory.mktemp("models") / "model")


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory, model: str) -> dict[str, Path]:
    """Runs of the local learner in one process."""
    out = tmp_path_factory.mktemp("local")
    return {weights: train(out / weights, model, weights) for weights in WEIGHTS}


@pytest.mark.parametrize(("stage", "weights"), [("zero2", "lora"), ("zero3", "full")])
def test_two_processes_end_with_the_weights_of_one(
    local: dict[str, Path], model: str, tmp_path: Path, stage: str, weights: str
) -> None:
    two = train(tmp_path / "two", model, weights, *zero(stage), processes=2)
    assert apart(two, local[weights]) < 1e-5


def test_what_is_compared_has_moved(local: dict[str, Path], model: str, tmp_path: Path) -> None:
    """At 1e-3 an update of Adam moves a weight by up to 1e-3; five follow the first."""
    first = train(tmp_path / "first", model, "full", "train.environment_steps=8")
    assert apart(first, local["full"]) > 3e-3


def test_a_run_goes_on_in_another_number_of_processes(
    local: dict[str, Path], model: str, tmp_path: Path
) -> None:
    half = (*zero("zero2"), f"train.environment_steps={4 * UPDATES}")
    run = train(tmp_path / "run", model, "full", *half, processes=2)
    command(run, "--resume", f"--set=train.environment_steps={8 * UPDATES}")
    assert apart(run, local["full"]) < 1e-5
