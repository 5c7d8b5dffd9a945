"""What a person sees of runs that are under way."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from colearn.runs.comparison.launch import _report_progress
from colearn.runs.comparison.progress import Goal, Lines, RemainingTime, watch
from colearn.runs.record.tail import NotesTail, Status
from colearn.text.terminal import Terminal


class Clock:
    """A clock that stands still unless it is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def at(steps: int, **fields: float) -> Status:
    return Status(environment_steps=steps, **fields)


def lines_of(out: io.StringIO) -> list[str]:
    return out.getvalue().splitlines()


def test_a_line_has_evaluation_training_return_rate_and_remaining_time() -> None:
    out, clock = io.StringIO(), Clock()
    watcher = Lines(Terminal(file=out), {"a-s0": Goal(400, metric="solved")}, clock)
    watcher.started("a-s0", "started")
    watcher.advanced("a-s0", at(0, evaluation=0.25, evaluated_at=0))
    clock.now = 30.0
    watcher.advanced(
        "a-s0",
        at(
            100,
            evaluation=0.25,
            evaluated_at=0,
            training_return=0.5,
            tokens_per_second=1234.4,
        ),
    )
    watcher.ended("a-s0", "finished")
    # 300 steps are left at 100 steps in 30 s
    assert lines_of(out) == [
        "a-s0: started",
        "a-s0: 0/400 environment steps, evaluation solved 0.250",
        "a-s0: 100/400 environment steps, training return 0.500, evaluation solved 0.250 at 0, "
        "1,234 tokens/s, 90 s left",
        "a-s0: finished",
    ]


def test_an_evaluation_is_a_line_though_its_value_is_that_of_the_last_one() -> None:
    out = io.StringIO()
    watcher = Lines(Terminal(file=out), {"a-s0": Goal(400)}, Clock())
    for steps, evaluated_at in ((0, 0), (8, 0), (8, 8), (16, 8)):
        watcher.advanced("a-s0", at(steps, evaluation=0.25, evaluated_at=evaluated_at))
    assert lines_of(out) == [
        f"a-s0: {steps}/400 environment steps, evaluation return 0.250" for steps in (0, 8)
    ]


def test_an_old_evaluation_is_told_again_after_a_tenth_of_the_budget_or_a_minute() -> None:
    out, clock = io.StringIO(), Clock()
    watcher = Lines(Terminal(file=out), {"a-s0": Goal(400)}, clock)
    for seconds, steps in ((0, 8), (1, 16), (2, 48), (3, 49), (62, 50), (63, 51)):
        clock.now = seconds
        watcher.advanced("a-s0", at(steps, evaluation=0.25, evaluated_at=8))
    assert [line.split("/")[0] for line in lines_of(out)] == ["a-s0: 8", "a-s0: 49", "a-s0: 51"]


def test_what_a_run_waits_for_is_a_line() -> None:
    out = io.StringIO()
    watcher = Lines(Terminal(file=out), {"a-s0": Goal(400)})
    watcher.noted("a-s0", "makes the model 'embedded-tiny' for this task, once")
    assert lines_of(out) == ["a-s0: makes the model 'embedded-tiny' for this task, once"]


def test_remaining_time_counts_from_the_first_report_of_a_resumed_run() -> None:
    clock = Clock()
    pace = RemainingTime(Goal(400), clock)
    clock.now = 50.0  # loading
    assert pace.left(at(300)) is None
    clock.now = 60.0
    assert pace.left(at(350)) == pytest.approx(10.0)
    assert pace.left(at(400)) is None


def test_iterations_that_end_a_run_first_decide_its_remaining_time() -> None:
    clock = Clock()
    pace = RemainingTime(Goal(1000, iterations=4), clock)
    pace.left(at(0))
    clock.now = 10.0
    assert pace.left(Status(environment_steps=8, iteration=1)) == pytest.approx(30.0)


@pytest.mark.parametrize(
    ("seconds", "shown"), [(3.4, "3 s"), (99, "99 s"), (600, "10 min"), (7200, "2.0 h")]
)
def test_times_are_shown_in_a_fitting_unit(seconds: float, shown: str) -> None:
    out, clock = io.StringIO(), Clock()
    watcher = Lines(Terminal(file=out), {"a": Goal(2)}, clock)
    watcher.advanced("a", at(0))
    clock.now = seconds
    watcher.advanced("a", at(1, evaluation=0.0))
    assert lines_of(out)[-1].endswith(f", {shown} left")


def test_a_notebook_has_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    watch(Terminal(force_jupyter=True), {"a-s0": Goal(400)}).started("a-s0", "started")
    assert capsys.readouterr().out == "a-s0: started\n"


def test_a_quiet_process_prints_no_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """Of several processes on one terminal, the first shows the progress."""
    console = Terminal(quiet=True, force_jupyter=False)
    watch(console, {"a-s0": Goal(400)}).started("a-s0", "started")
    assert capsys.readouterr().out == ""


def test_a_note_that_names_its_run_is_told_with_the_name_once(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("note: a-s0: collapse since update 2\nnote: a word\n")
    process: Any = SimpleNamespace(
        job=SimpleNamespace(name="a-s0"),
        notes=NotesTail(tmp_path / "log.txt"),
        tail=SimpleNamespace(advance=lambda: False),
    )
    out = io.StringIO()
    _report_progress(process, Lines(Terminal(file=out), {"a-s0": Goal(400)}, Clock()))
    assert lines_of(out) == ["a-s0: collapse since update 2", "a-s0: a word"]
