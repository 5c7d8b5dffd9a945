"""What a tracker is told about the run it belongs to."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from colearn.training.trackers import TrackioTracker, WandbTracker

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


@pytest.mark.parametrize(("local", "rows"), [(True, 6), (False, 7)])
def test_rows_that_a_killed_trackio_had_not_written_are_logged_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, local: bool, rows: int
) -> None:
    """Its thread writes every half second: after a kill, its database of 0.43 had six of seven."""
    stored = [{"step": n, "update/return": 0.0} for n in range(6)] + [{"step": 5, "transcripts": 0}]
    storage = SimpleNamespace(get_logs=lambda project, name: stored)
    run = SimpleNamespace(_is_local=local, log=lambda *_, **__: None)
    stand_in = SimpleNamespace(init=lambda **_: run)
    monkeypatch.setitem(sys.modules, "trackio", stand_in)
    database = SimpleNamespace(SQLiteStorage=storage)
    monkeypatch.setitem(sys.modules, "trackio.sqlite_storage", database)
    killed = TrackioTracker(tmp_path / "a", SETTINGS)
    killed.number = 6
    killed.log({"update/return": 0.0}, 6)
    assert TrackioTracker(tmp_path / "a", SETTINGS).present == rows


@pytest.mark.parametrize("cut", ["", "6 0123456789ab", "6", "x y z", "\x00" * 20])
def test_a_line_of_digests_or_an_id_that_was_cut_does_not_stop_a_resume(
    starts: list[dict[str, Any]], tmp_path: Path, cut: str
) -> None:
    """As after a full disk, or after the end of the machine."""
    (tmp_path / "a" / "trackio").mkdir(parents=True)
    (tmp_path / "a" / "trackio" / "id.txt").write_text("")
    tracker = TrackioTracker(tmp_path / "a", SETTINGS)
    assert not starts[0]["name"].endswith("-")
    tracker._digest_file.write_text(f"0 {'ab' * 8}\n{cut}")
    tracker.on_start(_Started())
    assert tracker._digests == {0: "ab" * 8}


class _Started(SimpleNamespace):
    earlier = ()
