"""The answer that training prints at each evaluation."""

from __future__ import annotations

import io

from rich.console import Console

from colearn.entry.python.run_progress import answer_line
from colearn.runs.comparison.progress import Bars, Goal
from colearn.runs.record import Episode


def episode(*answers: str, value: float | None = 0.5) -> Episode:
    turns = [{"actions": {"ada": "", "bob": answer}} for answer in answers]
    return Episode.model_validate({"iteration": 4, "item": "T", "return": value, "turns": turns})


def test_the_first_answer_that_is_not_empty_is_one_printable_short_line() -> None:
    assert answer_line(episode(" \n", "go\n\x1b[2J left")) == (
        "iteration 4, return 0.500, item T; bob answers: go \ufffd[2J left"
    )
    long = answer_line(episode("x" * 5000, value=None))
    assert long == f"iteration 4, item T; bob answers: {'x' * 100} ..."


def test_empty_answers_are_told() -> None:
    assert answer_line(episode("", "\n")).endswith("item T; all answers are empty")


def test_bars_print_an_answer_above_them_and_keep_it() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=60)
    with Bars(console, {"a": Goal(400)}) as watcher:
        watcher.started("a", "started")
        watcher.noted("a", "[bold]answers: " + "y" * 70)
        watcher.ended("a", "finished")
    assert out.getvalue().count("a: [bold]answers: " + "y" * 70) == 1
