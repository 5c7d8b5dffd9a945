"""A run that was killed and resumed has the curve of an uninterrupted one in every tracker."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from colearn.config import load_config
from colearn.training.loop import Experiment
from tests.helpers.tiny import save_model
from tests.helpers.wandb_file import history
from tests.integration.test_objects import SETTINGS

Curve = list[tuple[str, int, float]]
"""(metric, environment step, value), in the order of the file."""
PROGRAM = """
import os, signal, sys
from colearn.contract import Callback
from colearn.config import load_config
from colearn.training.loop import Experiment
import colearn.registry.given

class Stops(Callback):
    def on_rollout(self, event):
        if event.iteration == 3:
            os.kill(os.getpid(), signal.SIGKILL)

config, out = sys.argv[1:]
callbacks = [colearn.registry.given.give(Stops(), "Stops")]
Experiment(load_config(config, {"run.callbacks": callbacks}), out).run()
"""
"""A run that is killed in its fourth iteration; its last checkpoint is that after the second."""
OFFLINE = {
    "WANDB_MODE": "offline",
    "WANDB_SILENT": "true",
    "WANDB_X_SERVICE_WAIT": "300",  # seconds; on a busy machine, wandb's process starts slowly
}


def killed(config: Path, out: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(config), str(out)],
        env={**os.environ, **OFFLINE},
        capture_output=True,
        text=True,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


def finished(config: Path, out: Path, *, resume: bool = False) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in OFFLINE.items():
            patch.setenv(name, value)
        Experiment(load_config(config), out, resume=resume).run()
        importlib.import_module("wandb").teardown()  # its other process has written its files
    return out


def tensorboard_curve(folder: Path) -> Curve:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder / "tensorboard"), size_guidance={"scalars": 0})
    events.Reload()
    return [
        (tag, event.step, event.value)
        for tag in events.Tags()["scalars"]
        for event in events.Scalars(tag)
    ]


def wandb_curve(folder: Path) -> Curve:
    files = sorted((folder / "wandb").glob("offline-run-*/run-*.wandb"))
    rows = [row for file in files for row in history(file)]
    steps = [number for number, _ in rows]
    assert steps == list(range(len(steps))), "wandb drops what is not above its last step"
    return [
        (name, row["environment_steps"], value)
        for _, row in rows
        for name, value in row.items()
        if name.startswith(("update/", "evaluation/"))
    ]


TRACKERS: dict[str, Callable[[Path], Curve]] = {
    "tensorboard": tensorboard_curve,
    "wandb": wandb_curve,
}


def exact(curve: Curve) -> Curve:
    """Without what a clock measured; each metric by itself, in the order of its points."""
    timed = ("seconds", "time", "idle", "busy")
    kept = [one for one in curve if not any(word in one[0] for word in timed)]
    return sorted(kept, key=lambda one: one[0])


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("config")
    settings: dict[str, Any] = {
        **SETTINGS,
        "task": {"name": "tests.helpers.tiny:Notes", "items": 3},
        "algorithm": {"name": "magrpo"},
        "models": {"*": {"path": save_model(folder / "model"), "learning_rate": 1e-2}},
        "train": {"environment_steps": 1000, "episodes": 1, "iterations": 4},
        "evaluation": {"every": 2, "episodes": 2},
        "run": {"device": "cpu", "seed": 3, "checkpoint_every": 2, "trackers": [*TRACKERS]},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(settings))
    return folder / "config.yaml"


@pytest.fixture(scope="module")
def whole(config: Path) -> Path:
    for package in ("tensorboard", "wandb"):
        pytest.importorskip(package, reason=f"needs the {package} extra")
    return finished(config, config.parent / "whole")


def test_every_curve_of_a_killed_and_resumed_run_is_the_uninterrupted_one(
    config: Path, whole: Path, tmp_path: Path
) -> None:
    killed(config, tmp_path / "run")
    finished(config, tmp_path / "run", resume=True)
    for name, curve in TRACKERS.items():
        assert exact(curve(tmp_path / "run")) == exact(curve(whole)), name


def test_the_curves_hold_every_line_of_the_run(whole: Path) -> None:
    lines = [json.loads(line) for line in (whole / "metrics.jsonl").read_text().splitlines()]
    expected = sorted(
        (f"{line['kind']}/{name}", line["environment_steps"], value)
        for line in lines
        for name, value in line["metrics"].items()
    )
    assert sorted(wandb_curve(whole)) == expected
    shown = sorted(tensorboard_curve(whole))
    assert [one[:2] for one in shown] == [one[:2] for one in expected]
    assert [one[2] for one in shown] == pytest.approx([one[2] for one in expected], rel=1e-6)


def test_a_wandb_that_does_not_start_is_one_line(tmp_path: Path) -> None:
    pytest.importorskip("wandb", reason="needs the wandb extra")
    program = (
        "from pathlib import Path\n"
        "from colearn.errors import ConfigError\n"
        "from colearn.training.trackers import WandbTracker\n"
        "settings = {'task': {'name': 'notes'}, 'algorithm': {'name': 'magrpo'}}\n"
        "try:\n"
        f"    WandbTracker(Path({str(tmp_path)!r}), settings)\n"
        "except ConfigError as error:\n"
        "    print(error)\n"
    )
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WANDB_")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**kept, "WANDB_MODE": "online", "WANDB_SILENT": "true"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    said = "run.trackers: wandb does not start (UsageError: No API key configured"
    assert done.stdout.startswith(said) and done.stdout.count("\n") == 1, done
    assert done.stdout.endswith("; log in with `wandb login`, or set WANDB_MODE=offline\n")
