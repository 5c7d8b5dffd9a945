"""What wandb is told about the run that it belongs to, and which rows a resumed run logs."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from colearn.contract import Measured
from colearn.training.trackers import WandbTracker

SETTINGS = {"task": {"name": "str_build"}, "algorithm": {"name": "magrpo"}}


class Wandb(SimpleNamespace):
    """A stand-in for the package and its run, which another process has left with `step` rows."""

    offline, step = False, 0

    def __init__(self) -> None:
        super().__init__()
        self.starts: list[dict[str, Any]] = []
        self.rows: list[tuple[int, dict[str, Any]]] = []

    def init(self, **settings: Any) -> Wandb:
        self.starts.append(settings)
        return self

    def define_metric(self, *_: Any, **__: Any) -> None: ...

    def Table(self, columns: Any, data: Any) -> Any:
        return data

    def log(self, row: dict[str, Any], *, step: int, commit: bool) -> None:
        self.rows.append((step, row))


@pytest.fixture
def wandb(monkeypatch: pytest.MonkeyPatch) -> Wandb:
    package = Wandb()
    monkeypatch.setitem(sys.modules, "wandb", package)
    monkeypatch.delenv("WANDB_PROJECT", raising=False)
    return package


def test_a_resumed_run_keeps_its_id_and_another_run_has_its_own(
    wandb: Wandb, tmp_path: Path
) -> None:
    for name in ("a", "a", "b"):
        WandbTracker(tmp_path / name, SETTINGS)
    first, again, other = (start["id"] for start in wandb.starts)
    assert first == again != other
    (tmp_path / "b" / "wandb" / "id.txt").write_text("")  # as after the end of the machine
    WandbTracker(tmp_path / "b", SETTINGS)
    assert wandb.starts[-1]["id"] not in ("", first, other)


def test_runs_of_a_comparison_are_a_group_with_tags(
    wandb: Wandb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    WandbTracker(tmp_path / "alone", SETTINGS)
    monkeypatch.setenv("WANDB_PROJECT", "mine")
    WandbTracker(tmp_path / "walls" / "runs" / "magrpo-s0", SETTINGS)
    assert [start["group"] for start in wandb.starts] == [None, "walls"]
    assert [start["project"] for start in wandb.starts] == ["colearn", "mine"]
    assert wandb.starts[1]["tags"] == ["str_build", "magrpo"]


def test_a_resumed_run_logs_the_rows_that_wandb_lacks_and_none_twice(
    wandb: Wandb, tmp_path: Path
) -> None:
    """Of three rows before the checkpoint wandb has two; the fourth is the run's next."""
    wandb.step = 2
    earlier = [
        Measured(kind="update", iteration=n, environment_steps=8 * n, metrics={"return": n / 10})
        for n in range(3)
    ]
    tracker = WandbTracker(tmp_path / "a", SETTINGS)
    tracker.on_start(SimpleNamespace(earlier=earlier))  # type: ignore[arg-type]
    tracker.log({"update/return": 0.3}, 24)
    rows = [(row["update/return"], row["environment_steps"]) for _, row in wandb.rows]
    assert [step for step, _ in wandb.rows] == [2, 3] and rows == [(0.2, 16), (0.3, 24)]


def test_transcripts_have_the_step_of_their_evaluation_and_are_logged_once(
    wandb: Wandb, tmp_path: Path
) -> None:
    turn = {"observations": {"ada": "say", "ben": "hear"}, "actions": {"ada": "red"}, "reward": 0.5}
    episodes = [{"iteration": 4, "episode": 1, "item": "x", "turns": [turn]}]
    wandb.step = 1
    tracker = WandbTracker(tmp_path / "a", SETTINGS)
    tracker.on_start(SimpleNamespace(earlier=[]))  # type: ignore[arg-type]
    for steps in (0, 8):  # the first evaluation is there already
        tracker.transcripts(episodes, steps)
        tracker.log({"evaluation/return": 0.5}, steps)
    (number, shown), _ = wandb.rows
    assert (number, shown["environment_steps"]) == (1, 8)
    assert shown["transcripts"] == [
        [4, 1, "x", 0, "ada", "say", "red", 0.5],
        [4, 1, "x", 0, "ben", "hear", None, 0.5],
    ]
