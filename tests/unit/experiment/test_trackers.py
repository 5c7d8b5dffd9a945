"""What a tracker is told about the run it belongs to."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from colearn.experiment.trackers import TrackioTracker, WandbTracker

SETTINGS = {"task": {"name": "str_build"}, "algorithm": {"name": "magrpo"}}


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the package's `init` was called with."""
    calls: list[dict[str, Any]] = []
    run = SimpleNamespace(define_metric=lambda *_, **__: None)
    stand_in = SimpleNamespace(init=lambda **settings: calls.append(settings) or run)
    for name in ("wandb", "trackio"):
        monkeypatch.setitem(sys.modules, name, stand_in)
        monkeypatch.delenv(f"{name.upper()}_PROJECT", raising=False)
    return calls


def test_a_resumed_run_keeps_its_id_and_another_run_has_its_own(
    starts: list[dict[str, Any]], tmp_path: Path
) -> None:
    for name in ("a", "a", "b"):
        WandbTracker(tmp_path / name, SETTINGS)
    first, again, other = (start["id"] for start in starts)
    assert first == again != other


def test_runs_of_a_comparison_are_a_group_with_tags(
    starts: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_PROJECT", "mine")
    WandbTracker(tmp_path / "walls" / "runs" / "magrpo-s0", SETTINGS)
    WandbTracker(tmp_path / "alone", SETTINGS)
    assert [start["group"] for start in starts] == ["walls", None]
    assert starts[0]["tags"] == ["str_build", "magrpo"]
    assert starts[0]["project"] == "mine"


def test_trackio_continues_the_run_of_a_folder_by_its_name(
    starts: list[dict[str, Any]], tmp_path: Path
) -> None:
    for place in ("one/runs/a", "one/runs/a", "two/runs/a"):
        TrackioTracker(tmp_path / place, SETTINGS)
    first, again, other = (start["name"] for start in starts)
    assert first == again != other and first.startswith("a-")
    assert [start["resume"] for start in starts] == ["allow"] * 3
    assert [start["group"] for start in starts] == ["one", "one", "two"]
    assert starts[0]["project"] == "colearn"
