"""What a tracker is told about the run it belongs to."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from colearn.experiment.trackers import WandbTracker

SETTINGS = {"task": {"name": "str_build"}, "algorithm": {"name": "magrpo"}}


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What wandb.init was called with."""
    found: list[dict[str, Any]] = []
    stand_in = SimpleNamespace(init=lambda **settings: found.append(settings))
    monkeypatch.setitem(sys.modules, "wandb", stand_in)
    monkeypatch.delenv("WANDB_PROJECT", raising=False)
    return found


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
