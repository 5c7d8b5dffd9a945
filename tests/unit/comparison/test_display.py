"""Where the progress of runs is shown: terminal, notebook or file."""

from __future__ import annotations

import sys

import pytest

from colearn.runs.comparison.progress import Bars, Goal, Lines, watch
from colearn.text.terminal import Terminal

GOALS = {"a-s0": Goal(400, metric="solved"), "<b>": Goal(400)}

CELL = """
from colearn.text.terminal import Terminal
from colearn.runs.comparison.progress import Goal, watch
from colearn.runs.record.tail import Status

goals = {"a-s0": Goal(400, metric="solved"), "<b>": Goal(400)}
with watch(Terminal(), goals) as shown:
    shown.started("a-s0", "started")
    shown.advanced("a-s0", Status(environment_steps=100, evaluation=0.25))
    print("between")
    shown.ended("a-s0", "finished")
    shown.started("<b>", "started")
    shown.advanced("<b>", Status(environment_steps=8))
    shown.ended("<b>", "failed: <i>")
"""


@pytest.fixture
def in_notebook() -> Terminal:
    return Terminal(force_jupyter=True)


def test_a_terminal_has_bars_and_a_file_lines() -> None:
    assert isinstance(watch(Terminal(force_terminal=True, force_jupyter=False), GOALS), Bars)
    assert isinstance(watch(Terminal(force_terminal=False, force_jupyter=False), GOALS), Lines)


def test_a_notebook_without_ipywidgets_has_plain_lines(
    in_notebook: Terminal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with watch(in_notebook, GOALS) as shown:
        shown.started("a-s0", "started")
    assert capsys.readouterr().out == "a-s0: started\n"


def test_a_quiet_process_keeps_what_it_prints(capsys: pytest.CaptureFixture[str]) -> None:
    """Of several processes on one terminal, the first shows the bars."""
    with watch(Terminal(quiet=True, force_terminal=True, force_jupyter=False), GOALS) as shown:
        shown.started("a-s0", "started")
        print("from the task")
        print("a warning", file=sys.stderr)
    assert capsys.readouterr() == ("from the task\n", "a warning\n")


@pytest.mark.notebooks
def test_what_a_cell_prints_beside_bars_stays() -> None:
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipywidgets")
    printing = 'print("between")\n    for number in range(1500): print(number, flush=True)'
    cell = nbformat.v4.new_code_cell(CELL.replace('print("between")', printing))
    nbclient.NotebookClient(nbformat.v4.new_notebook(cells=[cell]), timeout=120).execute()
    printed = "".join(one["text"] for one in cell.outputs if one["output_type"] == "stream")
    assert printed.split() == ["between", *map(str, range(1500))]


@pytest.mark.notebooks
def test_a_notebook_with_ipywidgets_has_a_bar_for_each_run() -> None:
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipywidgets")
    cell = nbformat.v4.new_code_cell(CELL)
    notebook = nbformat.v4.new_notebook(cells=[cell])
    nbclient.NotebookClient(notebook, timeout=120).execute()
    (widgets,) = notebook.metadata["widgets"].values()
    outputs = [o for one in widgets["state"].values() for o in one["state"].get("outputs", ())]
    first, second = outputs[-1]["data"]["text/plain"].splitlines()
    assert first.startswith("a-s0") and "100/400 steps" in first and "solved 0.250" in first
    assert second.startswith("<b>") and "8/400 steps" in second and "failed: <i>" in second
    printed = [output["text"] for output in cell["outputs"] if output["output_type"] == "stream"]
    assert printed == ["between\n"]
