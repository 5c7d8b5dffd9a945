"""Names that a run's code chooses, in every place where they leave the process."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from xml.etree import ElementTree

import pytest
from fabricated_runs import write_run
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from rich.table import Table

from colearn.contract import EvaluateEvent, Headline
from colearn.contract.task_results import validate_metrics
from colearn.deploy.serve.server import announced
from colearn.entry.cli.compare import _show
from colearn.errors import TaskError
from colearn.runs.comparison.progress import Goal, Lines
from colearn.runs.record.tail import Status
from colearn.runs.report.curves import curves_figure, panel_figure
from colearn.runs.report.plots import drawn_text, svg_of
from colearn.runs.report.result_table import ResultCell, ResultTable
from colearn.runs.report.source import read_source
from colearn.runs.report.summarise import summarise
from colearn.text.notes import note
from colearn.text.printable import cell, escape, printable
from colearn.text.terminal import Terminal
from colearn.training.listeners import _tell

FORMULAS = ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1+1"]
"""Those that OWASP lists under CSV injection."""
NAMES = [*FORMULAS, "half \ud800", "\x1b[2Jcleared", "a\nb", "a|b"]


@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_is_a_text_in_a_cell(name: str) -> None:
    assert cell(name)[0] == "'"


@pytest.mark.parametrize("text", ["-0.25", "+3", "-1e-05", "[-1, 2]", "return", "", "-inf"])
def test_numbers_and_plain_texts_stay_as_they_are(text: str) -> None:
    assert cell(text) == text


@pytest.mark.parametrize("name", NAMES)
def test_a_table_is_written_whatever_its_names_are(name: str) -> None:
    content = ResultCell(text=name, remark=name, best=True)
    table = ResultTable(name="t", title=name, note="", columns=(name,), rows=((name, (content,)),))
    head, row = csv.reader(io.StringIO(table.csv()))
    for text in (*head, *row):
        assert not text.startswith(("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d"))
    for text in (table.csv(), table.latex(), table.markdown()):
        text.encode()
        assert "\x1b" not in text
    lines = [line for line in table.markdown().splitlines() if line.startswith("|")]
    assert len(lines) == 3 and len(table.latex().splitlines()) == 9


@pytest.mark.parametrize("name", NAMES)
def test_a_callbacks_names_can_be_written_and_do_not_end_training(name: str) -> None:
    class Names:
        def on_evaluate(self, event: EvaluateEvent) -> None:
            event.metrics[name] = 1.0
            event.stop = name

    event = SimpleNamespace(metrics={"return": 0.5}, stop=None)
    _tell(cast(Any, Names()), cast(Any, event))
    (shown,) = event.metrics.keys() - {"return"}
    for text in (shown, event.stop):
        text.encode()
        assert "\x1b" not in text
    assert event.metrics == {"return": 0.5, shown: 1.0} and json.dumps(event.metrics)


def test_a_tasks_metric_that_is_no_text_is_one_line() -> None:
    with pytest.raises(TaskError, match=r"task\.metrics: a name has half of a surrogate pair"):
        validate_metrics({"half \ud800": 1.0})


@pytest.mark.parametrize("name", NAMES)
def test_a_served_agents_name_is_one_printable_line(name: str) -> None:
    assert announced(name, "http://127.0.0.1:8000/v1").isprintable()


@pytest.mark.parametrize("name", NAMES)
def test_a_page_takes_every_name(name: str) -> None:
    escape(name).encode()
    assert "\x1b" not in escape(name)


@pytest.mark.parametrize("name", [*NAMES, r"$\frac{$", "$x$", r"\$x$", "a" * 500])
def test_a_figure_shows_a_name_as_text(name: str) -> None:
    """matplotlib reads what stands between two `$` as a formula, and refuses half a character."""
    figure = Figure()
    figure.subplots().set_ylabel(drawn_text(name))
    figure.legend(handles=[Line2D([], [], label=drawn_text(name))])
    svg = svg_of(figure)
    ElementTree.fromstring(svg)
    shown = " ".join(printable(name).split())
    assert escape(shown[:60]).replace("&#x27;", "'") in svg


def test_the_figures_of_a_report_show_names_as_text(tmp_path: Path) -> None:
    write_run(tmp_path / "run", "magrpo", 0)
    summary = summarise(read_source(tmp_path / "run"))
    (algorithm,) = summary.algorithms.values()
    name = "half \ud800 $\\frac{$"
    compared = replace(summary.compared, headline=Headline(metric=name))
    odd = replace(summary, compared=compared, algorithms={name: algorithm})
    assert "half \ufffd $\\frac{$" in svg_of(panel_figure(odd, "environment_steps"))
    assert "half \ufffd $\\frac{$" in svg_of(curves_figure(odd))


MARKUP = ["[/b]", "[red]a", "a:cat:b", r"a\[b]"]
"""What rich reads as markup or as an emoji."""
SHOWN = [*(name for name in NAMES if "\t" not in name), *MARKUP]


@pytest.mark.parametrize("name", SHOWN)
def test_a_terminal_shows_a_name_as_it_is(name: str) -> None:
    out = io.StringIO()
    terminal = Terminal(file=out, width=200)
    table = Table(name, title=name)
    table.add_row(name)
    terminal.print(name, highlight=False)
    terminal.print(table)
    lines = Lines(terminal, {name: Goal(400, metric=name)})
    lines.noted(name, name)
    lines.advanced(name, Status(environment_steps=400, evaluation=0.5, evaluated_at=400))
    assert "\x1b" not in out.getvalue() and "\ud800" not in out.getvalue()
    shown = printable(name).split("\n")[-1].split("\ufffd")[-1]
    assert out.getvalue().count(shown) >= 7


@pytest.mark.parametrize("name", SHOWN)
def test_a_note_shows_a_name_as_it_is(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    note(name)
    assert capsys.readouterr().err == f"note: {printable(name)}\n"


@pytest.mark.parametrize("name", SHOWN)
def test_a_command_shows_the_names_of_a_report(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mean = {"mean": 0.5, "low": 0.25, "high": 0.75, "seeds": 5}
    summary = {
        "compared": {"headline": {"metric": name}},
        "headline": f"Evaluation {name}: {name} went up.",
        "notes": [f"A note on {name}."],
        "algorithms": {name: {"metrics": {name: {"first": mean, "last": None}}, "critic": None}},
        "runs": [{"algorithm": name, "wall_seconds": 1.0}],
    }
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    _show(tmp_path)
    told = capsys.readouterr().out
    assert "0.500 [0.250, 0.750]" in told and "\x1b" not in told and "\ud800" not in told
    shown = printable(name).split("\n")[-1].split("\ufffd")[-1]
    assert told.count(shown) >= 4
