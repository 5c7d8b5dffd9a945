"""Restarts after losses, with a stand-in for the run: how often, from what, and what is told."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from colearn.errors import ColearnError, ConfigError, ModelLost, ServerLost, WorkerLost
from colearn.runs.record.folder import RUN
from colearn.training import restarts
from colearn.training.restarts import run_with_restarts


class Runs:
    """Runs of which each ends with its error, where it has one.

    loads: whether models are loaded, after which the folder holds a run.
    """

    def __init__(self, *errors: ColearnError | None, loads: bool = True) -> None:
        self.errors, self.loads = list(errors), loads
        self.resumed = list[bool]()
        self.discarded = 0

    def __call__(self, config: Any, folder: Path, *, resume: bool) -> Any:
        self.resumed.append(resume)
        error = self.errors.pop(0)
        if not self.loads:
            assert error is not None
            raise error
        (folder / RUN).write_text("{}")

        def run(report: Any) -> str:
            if error is not None:
                raise error
            return "record"

        return SimpleNamespace(run=run, record=SimpleNamespace(discard=self._discard))

    def _discard(self) -> None:
        self.discarded += 1


def outcome(
    monkeypatch: pytest.MonkeyPatch, folder: Path, runs: Runs, allowed: int = 0
) -> ColearnError | str:
    """The record, or the error that ended the run."""
    monkeypatch.setattr(restarts, "Experiment", runs)
    config: Any = SimpleNamespace(run=SimpleNamespace(restarts=allowed))
    try:
        return str(run_with_restarts(config, folder))
    except ColearnError as error:
        return error


LOSSES = (WorkerLost("task.step: a process died; see"), ServerLost("gone"), ModelLost("lost"))


def test_a_run_goes_on_after_as_many_losses_as_it_may_be_restarted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = Runs(*LOSSES, None)
    assert outcome(monkeypatch, tmp_path, runs, allowed=3) == "record"
    assert runs.resumed == [False, True, True, True] and not runs.discarded
    assert capsys.readouterr().err.splitlines() == [
        "note: restart 1 of 3: task.step: a process died",
        "note: restart 2 of 3: gone",
        "note: restart 3 of 3: lost",
    ]


def test_one_loss_more_ends_the_run_with_that_loss(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    runs = Runs(*LOSSES, None)
    assert outcome(monkeypatch, tmp_path, runs, allowed=2) is LOSSES[2]
    assert runs.resumed == [False, True, True] and not runs.discarded


def test_a_loss_while_models_are_loaded_leaves_nothing_to_resume(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    runs = Runs(*LOSSES[:2], loads=False)
    assert outcome(monkeypatch, tmp_path, runs, allowed=1) is LOSSES[1]
    assert runs.resumed == [False, False]


def test_another_error_is_not_tried_again_and_its_folder_is_given_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wrong = ConfigError("task: wrong")
    runs = Runs(wrong, None)
    assert outcome(monkeypatch, tmp_path, runs, allowed=5) is wrong
    assert runs.resumed == [False] and runs.discarded == 1


@pytest.mark.parametrize(("count", "resumes"), [("0", False), ("1", True)])
def test_processes_that_torchrun_started_again_resume_and_those_that_it_starts_first_do_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, count: str, resumes: bool
) -> None:
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", count)
    runs = Runs(None)
    assert outcome(monkeypatch, tmp_path, runs) == "record"
    assert runs.resumed == [resumes]
