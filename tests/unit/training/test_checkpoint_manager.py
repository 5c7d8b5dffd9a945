"""When a run's state is written, what a checkpoint holds, and what comes back from it."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from colearn.contract import NetworkKey
from colearn.errors import CheckpointError
from colearn.models.load import Tokenizers
from colearn.runs.record import Best, Progress
from colearn.runs.record.checkpoints import Checkpoints
from colearn.training import checkpoint_manager
from colearn.training.checkpoint_manager import CheckpointManager
from colearn.training.processes import Processes
from colearn.training.team import Team


class Number:
    """A learner, a frozen copy or a source of rollouts whose state is one number."""

    def __init__(self, number: float) -> None:
        self.number = number

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "number.json").write_text(json.dumps(self.number))

    def load(self, folder: Path) -> None:
        self.number = json.loads((folder / "number.json").read_text())

    def restore(self, folder: Path, at: Any) -> None:
        self.load(folder)


def state(*numbers: float) -> dict[str, Any]:
    """An actor, a value model, a reference and a past self."""
    keys = (
        NetworkKey("actor", "team"),
        NetworkKey("critic", "team"),
        NetworkKey("reference", "team"),
        NetworkKey("past", "team", 0),
    )
    made = [Number(number) for number in numbers]
    return {
        "learners": dict(zip(keys[:2], made[:2], strict=True)),
        "copies": dict(zip(keys[2:], made[2:], strict=True)),
    }


def manager(
    folder: Path, held: dict[str, Any], sources: dict[str, Any] | None = None, **run: Any
) -> CheckpointManager:
    usual = {
        "checkpoint_every": None,
        "checkpoint_minutes": None,
        "keep_checkpoints": 2,
        "accept_changes": False,
    }
    writer: Any = SimpleNamespace(
        folder=SimpleNamespace(checkpoints=Checkpoints(folder)), writing=nullcontext
    )
    config = SimpleNamespace(run=SimpleNamespace(**{**usual, **run}))
    of_run: Any = SimpleNamespace(config=config, moving=True)
    team = Team(
        run=of_run,
        tokenizers=Tokenizers(),
        networks={},
        players={},
        sources=sources or {},
        **held,
    )
    return CheckpointManager(writer, team, Processes(torch.device("cpu")))


def numbers(held: dict[str, Any]) -> list[float]:
    return [one.number for group in held.values() for one in group.values()]


def iterations(folder: Path) -> list[int]:
    return [checkpoint.iteration for checkpoint in Checkpoints(folder).all()]


def test_every_state_comes_back_from_the_checkpoint_that_holds_it(tmp_path: Path) -> None:
    before, after = state(1.0, 2.0, 3.0, 4.0), state(0.0, 0.0, 0.0, 0.0)
    saves = manager(tmp_path, before)
    saves.experience = Number(5.0)  # type: ignore[assignment]
    saves.save(Progress(iteration=3, cast={"taken": 1.0}))
    loads = manager(tmp_path, after)
    progress = loads.load()
    assert progress is not None and (progress.iteration, progress.cast) == (3, {"taken": 1.0})
    assert numbers(after) == [1.0, 2.0, 3.0, 4.0]
    rollouts = Number(0.0)
    rollouts.restore(loads.loaded, None)
    assert rollouts.number == 5.0


def test_a_state_is_written_once_and_a_later_one_again(tmp_path: Path) -> None:
    """The run changes one object of progress in place."""
    held, progress = state(1.0, 2.0, 3.0, 4.0), Progress()
    saves = manager(tmp_path, held)
    assert saves.save(progress) == tmp_path / "step-0"
    assert saves.save(progress) is None
    progress.iteration = 1
    assert saves.save(progress) == tmp_path / "step-1"
    progress.best = Best(iteration=1, value=2.0)  # an evaluation of the same iteration
    assert saves.save(progress) == tmp_path / "step-1"
    assert saves.save(progress) is None
    assert Checkpoints(tmp_path).all()[-1].progress.best == Best(iteration=1, value=2.0)


def test_a_state_that_was_loaded_is_not_written_again_unless_files_changed(tmp_path: Path) -> None:
    files = {"task.reward": {"mine.py": "one"}}
    manager(tmp_path, state(1.0, 2.0, 3.0, 4.0), files).save(Progress(iteration=1))
    same = manager(tmp_path, state(0.0, 0.0, 0.0, 0.0), files)
    loaded = same.load()
    assert loaded is not None and same.save(loaded) is None

    other = {"task.reward": {"mine.py": "two"}}
    with pytest.raises(CheckpointError, match=r"^task\.reward: mine\.py is not the one"):
        manager(tmp_path, state(0.0, 0.0, 0.0, 0.0), other).load()
    meant = manager(tmp_path, state(0.0, 0.0, 0.0, 0.0), other, accept_changes=True)
    loaded = meant.load()
    assert loaded is not None and loaded.changes == ["task.reward: mine.py"]
    assert meant.save(loaded) == tmp_path / "step-1"
    again = manager(tmp_path, state(0.0, 0.0, 0.0, 0.0), other).load()  # those files are known
    assert again is not None and again.changes == ["task.reward: mine.py"]


def test_changes_add_up_over_resumes(tmp_path: Path) -> None:
    held = state(1.0, 2.0, 3.0, 4.0)
    manager(tmp_path, held, {"task.reward": {"mine.py": "one"}}).save(Progress())
    for version in ("two", "three"):
        files = {"task.reward": {"mine.py": version}, "task.path": {"rows.jsonl": version}}
        resumed = manager(tmp_path, held, files, accept_changes=True)
        progress = resumed.load()
        assert progress is not None
        resumed.save(progress)
    assert progress.changes == ["task.reward: mine.py", "task.path: rows.jsonl"]


def test_checkpoints_are_due_at_the_multiples_of_their_interval(tmp_path: Path) -> None:
    saves = manager(tmp_path, state(1.0, 2.0, 3.0, 4.0), checkpoint_every=3)
    due = [saves.due(Progress(iteration=iteration)) for iteration in range(7)]
    assert due == [True, False, False, True, False, False, True]


def test_checkpoints_are_due_when_minutes_have_passed_since_the_last_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = {"now": 100.0}
    monkeypatch.setattr(checkpoint_manager, "monotonic", lambda: clock["now"])
    saves = manager(tmp_path, state(1.0, 2.0, 3.0, 4.0), checkpoint_minutes=2.0)
    told = []
    for passed in (119.0, 1.0, 119.0, 1.0):
        clock["now"] += passed
        told.append(saves.due(Progress(iteration=1)))
        if told[-1]:
            saves.save(Progress(iteration=len(told)))
    assert told == [False, True, False, True]


def test_the_newest_and_the_best_checkpoints_are_kept_and_none_of_a_later_iteration(
    tmp_path: Path,
) -> None:
    held = state(1.0, 2.0, 3.0, 4.0)
    saves = manager(tmp_path, held)
    best = Best(iteration=1, value=9.0)
    for iteration in range(6):
        saves.save(Progress(iteration=iteration, best=best if iteration else None))
    assert iterations(tmp_path) == [1, 4, 5]
    # a run that was resumed from before them, because they were damaged, goes another way
    manager(tmp_path, held).save(Progress(iteration=2, best=best))
    assert iterations(tmp_path) == [1, 2]


def test_a_damaged_checkpoint_is_passed_over_and_its_state_is_not_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held = state(1.0, 2.0, 3.0, 4.0)
    saves = manager(tmp_path, held)
    for iteration in (1, 2):
        held["learners"][NetworkKey("actor", "team")].number = float(10 * iteration)
        saves.save(Progress(iteration=iteration))
    next((tmp_path / "step-2").rglob("number.json")).write_text("0")
    after = state(0.0, 0.0, 0.0, 0.0)
    progress = manager(tmp_path, after).load()
    assert progress is not None and progress.iteration == 1
    assert numbers(after) == [10.0, 2.0, 3.0, 4.0]
    assert "the checkpoint of iteration 1 is used instead" in capsys.readouterr().err


def test_a_checkpoint_that_cannot_be_written_leaves_the_earlier_one(tmp_path: Path) -> None:
    held = state(1.0, 2.0, 3.0, 4.0)
    saves = manager(tmp_path, held)
    saves.save(Progress(iteration=1))

    def full(folder: Path) -> None:
        raise OSError("no space left on device")

    held["learners"][NetworkKey("critic", "team")].save = full
    with pytest.raises(OSError, match="no space"):
        saves.save(Progress(iteration=2))
    assert iterations(tmp_path) == [1] and [path.name for path in tmp_path.iterdir()] == ["step-1"]
    del held["learners"][NetworkKey("critic", "team")].save
    assert saves.save(Progress(iteration=2)) == tmp_path / "step-2"  # it was not kept before
