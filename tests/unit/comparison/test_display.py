"""Where the progress of runs is shown: terminal, notebook or file."""

from __future__ import annotations

import sys

import pytest
from rich.console import Console

from colearn.comparison.progress import Bars, Goal, Lines, watch
from colearn.record.meter import Status

GOALS = {"a-s0": Goal(400, metric="solved"), "<b>": Goal(400)}


@pytest.fixture
def in_notebook() -> Console:
    return Console(force_jupyter=True)


def test_a_terminal_has_bars_and_a_file_lines() -> None:
    assert isinstance(watch(Console(force_terminal=True, force_jupyter=False), GOALS), Bars)
    assert isinstance(watch(Console(force_terminal=False, force_jupyter=False), GOALS), Lines)


def test_a_notebook_without_ipywidgets_has_plain_lines(
    in_notebook: Console, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with watch(in_notebook, GOALS) as shown:
        shown.started("a-s0", "started")
    assert capsys.readouterr().out == "a-s0: started\n"


@pytest.mark.notebooks
def test_a_notebook_with_ipywidgets_has_a_bar_for_each_run(in_notebook: Console) -> None:
    pytest.importorskip("ipywidgets")
    shown = watch(in_notebook, GOALS)
    shown.started("a-s0", "started")
    shown.advanced("a-s0", Status(environment_steps=100, evaluation=0.25))
    shown.ended("a-s0", "finished")
    shown.advanced("<b>", Status(environment_steps=8))
    shown.ended("<b>", "failed: <i>")
    (_, bar, text), (name, other, failure) = (row.children for row in shown.box.children)
    assert (bar.value, bar.max, bar.bar_style) == (100, 400, "success")
    assert text.value == "100/400 steps, evaluation solved 0.250, finished"
    assert (name.value, other.bar_style) == ("&lt;b&gt;", "danger")
    assert failure.value == "failed: &lt;i&gt;"
