"""A run that was killed and resumed has the curve of an uninterrupted one in every tracker."""

from __future__ import annotations

import csv
import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from colearn.config import load_config
from colearn.contract import Headline, Measured, StartEvent, UpdateEvent
from colearn.training.loop import Experiment
from tests.helpers.tiny import Notes, save_model
from tests.helpers.wandb_file import history
from tests.integration.test_objects import SETTINGS

Curve = list[tuple[str, int, float]]
"""(metric, environment step, value), in the order of the file."""
STOPS = [
    ("on_rollout", 3, "SIGKILL"),
    pytest.param(("on_evaluate", 2, "SIGKILL"), marks=pytest.mark.slow),
    pytest.param(("on_rollout", 3, "SIGTERM"), marks=pytest.mark.slow),
]
PROGRAM = """
import os, signal, sys
from dataclasses import dataclass
from colearn.contract import Callback
from colearn.config import load_config
from colearn.training.interruption import Interrupted
from colearn.training.loop import Experiment
import colearn.registry.given

config, out, resume, method, iteration, number = sys.argv[1:]

class Stops(Callback):
    pass

def stop(self, event):
    if event.iteration == int(iteration) and not os.path.exists(out + ".stopped"):
        open(out + ".stopped", "w").close()
        os.kill(os.getpid(), getattr(signal, number))

setattr(Stops, method, stop)
sets = {"run.callbacks": [colearn.registry.given.give(Stops(), "Stops")]}
try:
    Experiment(load_config(config, sets), out, resume=resume == "resume").run()
except Interrupted:
    sys.exit(3)
"""


OFFLINE = {
    "WANDB_MODE": "offline",
    "WANDB_SILENT": "true",
    "WANDB_X_SERVICE_WAIT": "300",  # seconds; on a busy machine, wandb's process starts slowly
}


def run(config: Path, out: Path, *, stop: tuple[str, int, str], resume: bool = False) -> int:
    method, iteration, number = stop
    words = [str(config), str(out), "resume" if resume else "new", method, str(iteration), number]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        env={**os.environ, **OFFLINE},
        capture_output=True,
        text=True,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode


def csv_curve(folder: Path) -> Curve:
    with (folder / "metrics.csv").open(newline="") as file:
        return [
            (f"{row['kind']}/{row['metric']}", int(row["environment_steps"]), float(row["value"]))
            for row in csv.DictReader(file)
        ]


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
    "csv": csv_curve,
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
        "train": {"environment_steps": 1000, "episodes": 1, "iterations": 5},
        "evaluation": {"every": 2, "episodes": 2},
        "run": {"device": "cpu", "seed": 3, "checkpoint_every": 2, "trackers": [*TRACKERS]},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(settings))
    return folder / "config.yaml"


@pytest.fixture(scope="module")
def whole(config: Path) -> Path:
    for package in ("tensorboard", "wandb"):
        pytest.importorskip(package, reason=f"needs the {package} extra")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in OFFLINE.items():
            patch.setenv(name, value)
        Experiment(load_config(config), config.parent / "whole").run()
        importlib.import_module("wandb").teardown()  # its other process has written its files
    return config.parent / "whole"


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: "-".join(map(str, stop)))
def test_every_curve_of_a_killed_and_resumed_run_is_the_uninterrupted_one(
    stop: tuple[str, int, str], config: Path, whole: Path, tmp_path: Path
) -> None:
    expected = -signal.SIGKILL if stop[2] == "SIGKILL" else 3
    assert run(config, tmp_path / "run", stop=stop) == expected
    assert run(config, tmp_path / "run", stop=stop, resume=True) == 0
    for name, curve in TRACKERS.items():
        assert exact(curve(tmp_path / "run")) == exact(curve(whole)), name


def test_the_curves_hold_every_line_of_the_run(whole: Path) -> None:
    lines = [json.loads(line) for line in (whole / "metrics.jsonl").read_text().splitlines()]
    expected = sorted(
        (f"{line['kind']}/{name}", line["environment_steps"], value)
        for line in lines
        for name, value in line["metrics"].items()
    )
    assert sorted(csv_curve(whole)) == sorted(wandb_curve(whole)) == expected
    shown = sorted(tensorboard_curve(whole))
    assert [one[:2] for one in shown] == [one[:2] for one in expected]
    assert [one[2] for one in shown] == pytest.approx([one[2] for one in expected], rel=1e-6)


# --- a resumed run that is not the same bit for bit ---


def logged(
    folder: Path, values: list[float], *, earlier: Sequence[float] = (), seconds: float
) -> str:
    """Log a row per value, behind those of an earlier process; returns the run's id at wandb."""
    from colearn.training.trackers import WandbTracker

    settings = {"task": {"name": "notes"}, "algorithm": {"name": "magrpo"}}
    tracker, task = WandbTracker(folder, settings), Notes()
    lines = [
        Measured(kind="update", iteration=n, environment_steps=n, metrics=row(value, 1.0))
        for n, value in enumerate(earlier)
    ]
    start = StartEvent(
        iteration=len(lines),
        environment_steps=len(lines),
        task=task,
        folder=folder,
        config=settings,
        headline=Headline("return"),
        resumed=bool(lines),
        earlier=lines,
    )
    tracker.on_start(start)
    for n, value in enumerate(values, start=len(lines)):
        event = UpdateEvent(
            iteration=n, environment_steps=n, task=task, trees=(), metrics=row(value, seconds)
        )
        tracker.on_update(event)
    tracker.on_end()
    importlib.import_module("wandb").teardown()  # its other process has written its files by then
    return (folder / "wandb" / "id.txt").read_text()


def row(value: float, seconds: float) -> dict[str, Any]:
    return {"return": value, "seconds_update": seconds}


def wandb_returns(folder: Path, run_id: str) -> list[float]:
    files = sorted((folder / "wandb").glob(f"offline-run-*/run-{run_id}.wandb"))
    return [one["update/return"] for file in files for _, one in history(file)]


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"WANDB_MODE": "online"}, "UsageError: No API key configured"),
        pytest.param({"WANDB_MODE": "nonsense"}, "ValidationError: ", marks=pytest.mark.slow),
        pytest.param(
            {"WANDB_X_SERVICE_WAIT": "0.01"},
            "ServicePollForTokenError: Failed to read port info",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_wandb_that_does_not_start_is_one_line(
    variables: dict[str, str], reason: str, tmp_path: Path
) -> None:
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
        env={**kept, "WANDB_MODE": "offline", "WANDB_SILENT": "true", **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    said = f"run.trackers: wandb does not start ({reason}"
    assert done.stdout.startswith(said) and done.stdout.count("\n") == 1, done
    assert done.stdout.endswith("; log in with `wandb login`, or set WANDB_MODE=offline\n")


@pytest.fixture
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb", reason="needs the wandb extra")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")


@pytest.mark.usefixtures("_offline")
def test_rows_that_a_resumed_run_repeats_otherwise_are_not_its_curve(tmp_path: Path) -> None:
    """As on a device whose sums depend on the order of its threads: the killed run was at row 4."""
    first = logged(tmp_path, [0.0, 0.1, 0.2, 0.3], seconds=1.0)
    second = logged(tmp_path, [0.25, 0.35, 0.45], earlier=[0.0, 0.1], seconds=2.0)
    assert second != first
    assert wandb_returns(tmp_path, second) == [0.0, 0.1, 0.25, 0.35, 0.45]
    assert wandb_returns(tmp_path, first) == [0.0, 0.1, 0.2, 0.3]


@pytest.mark.usefixtures("_offline")
def test_rows_that_are_repeated_in_all_but_their_times_are_logged_once(tmp_path: Path) -> None:
    first = logged(tmp_path, [0.0, 0.1, 0.2, 0.3], seconds=1.0)
    second = logged(tmp_path, [0.2, 0.3, 0.4], earlier=[0.0, 0.1], seconds=2.0)
    assert second == first
    assert wandb_returns(tmp_path, first) == [0.0, 0.1, 0.2, 0.3, 0.4]
