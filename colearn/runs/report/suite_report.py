"""Writes a suite's table as Markdown, HTML and JSON, and prints it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from rich.table import Table as TerminalTable
from rich.text import Text

import colearn
from colearn.config import SuiteSettings
from colearn.runs.record.files import published
from colearn.text.masking import masked, masked_settings
from colearn.text.terminal import Terminal

from .page import render
from .result_table import ResultCell, ResultTable, numbers_of
from .show import show_number
from .suite_table import COST, TIME, Column, Figures, read_figures
from .write import write_tables

_CAPTION = (
    "Time: seconds that an episode's answers take, the slowest agent of a turn summed over its "
    "turns; a pipeline's agents answer one after the other, so theirs are added up. All episodes "
    "of an evaluation are played as one batch, whose time it is: rows of one task compare, tasks "
    "do not. Cost: tokens per agent and turn. All else {unit}after training. Bold: best mean "
    "of a column ({low}: lowest), which need not differ from the others. {seeds}"
)
_WIDEST_CELL = 7


def write_suite_report(suite: SuiteSettings, folder: Path, command: str | None) -> Path:
    """Write NAME.md, summary.json, tables/NAME.csv and .tex, and index.html; return the path of
    index.html.

    Errors: CheckpointError if a file of a run cannot be read.
    """
    figures = read_figures(suite, folder)
    command = None if command is None else masked(command)
    summary = masked_settings(_summary(suite, figures, command))
    with published(folder) as out:
        (out / "summary.json").write_text(
            json.dumps(summary, indent=1, allow_nan=False) + "\n",
            encoding="utf-8",
        )
        (out / f"{suite.name}.md").write_text(_markdown(suite, figures, command), encoding="utf-8")
        write_tables([_table(suite, figures)], out)
        html = _html(suite, figures, folder, command)
        (out / "index.html").write_text(html, encoding="utf-8")
    return folder / "index.html"


def print_suite_table(suite: SuiteSettings, folder: Path, console: Terminal) -> None:
    """Print the table of a finished suite, as one table per task if the terminal is narrow."""
    figures = read_figures(suite, folder)
    longest = max(map(len, suite.rows.values()))
    wide = longest + (_WIDEST_CELL + 3) * len(figures.columns) + 4 <= console.width
    tasks = list(suite.configs)
    for group in [tasks] if wide else [[task] for task in tasks]:
        console.print(_terminal_table(suite, figures, group))
    console.print(_caption(suite, figures), highlight=False)
    for line in _numbered(figures):
        console.print(line, highlight=False, soft_wrap=True)


def _terminal_table(suite: SuiteSettings, figures: Figures, tasks: list[str]) -> TerminalTable:
    numbers = [n for n, column in enumerate(figures.columns) if column.task in tasks]
    alone = len(tasks) == 1
    table = TerminalTable("", title=suite.columns[tasks[0]].title if alone else None)
    for number in numbers:
        column = figures.columns[number]
        first = next(n for n in numbers if figures.columns[n].task == column.task)
        title = suite.columns[column.task].title if number == first and not alone else ""
        head = f"{title}\n{column.title}".lstrip("\n" if alone else "")
        table.add_column(head, justify="right")
    for label, printed in suite.rows.items():
        cells = (_cell(figures, label, number) for number in numbers)
        table.add_row(
            printed,
            *(
                Text.assemble((cell.text, "bold" if cell.best else ""), f" {cell.note}".rstrip())
                for cell in cells
            ),
        )
    return table


def _table(suite: SuiteSettings, figures: Figures) -> ResultTable:
    return ResultTable(
        name=suite.name,
        title=suite.title,
        note=_caption(suite, figures),
        columns=tuple(
            f"{suite.columns[column.task].title} {column.title}" for column in figures.columns
        ),
        rows=tuple(
            (
                printed,
                tuple(_cell(figures, label, number) for number in range(len(figures.columns))),
            )
            for label, printed in suite.rows.items()
        ),
    )


def _cell(figures: Figures, label: str, number: int) -> ResultCell:
    value = figures.values[label][number]
    mark = figures.marks.get((label, number))
    return ResultCell(
        text=show_number(None if value is None else value.mean),
        remark="" if mark is None else f"({mark})",
        best=label in figures.best(number),
        numbers=numbers_of(value),
    )


def _caption(suite: SuiteSettings, figures: Figures) -> str:
    low = dict.fromkeys(column.title for column in figures.columns if not column.high)
    count = len(figures.seeds)
    if count == 1:
        seeds = f"One seed ({figures.seeds[0]}): no intervals."
    else:
        seeds = f"Means over {count} seeds, intervals in summary.json."
    scales = {column.scale for column in figures.columns if column.key not in (TIME, COST)}
    unit = "in the units that summary.json says, "
    if len(scales) < 2:
        unit = {"1": "", "100": "in percent, "}.get(f"{max(scales, default=1.0):g}", unit)
    return _CAPTION.format(low=", ".join(low), seeds=f"Size {suite.size}. {seeds}", unit=unit)


def _numbered(figures: Figures) -> list[str]:
    return [f"({number}) {text}" for number, text in enumerate(figures.notes, start=1)]


def _markdown(suite: SuiteSettings, figures: Figures, command: str | None) -> str:
    lines = [_table(suite, figures).markdown()]
    lines += [f"{line}\n" for line in _numbered(figures)]
    if command:
        lines.append(f"Made with `{command}`.\n")
    return "\n".join(lines)


def _html(suite: SuiteSettings, figures: Figures, folder: Path, command: str | None) -> str:
    return render(
        "suite.html",
        title=suite.name,
        headline=suite.title,
        table=_table(suite, figures),
        notes=figures.notes,
        reports=[
            (f"{task}/report.html", columns.title, suite.configs[task])
            for task, columns in suite.columns.items()
            if task in suite.configs and (folder / task / "report.html").is_file()
        ],
        command=command,
    )


def _unit(column: Column) -> str:
    return column.key if column.scale == 1.0 else f"{column.key} times {column.scale:g}"


def _summary(suite: SuiteSettings, figures: Figures, command: str | None) -> dict[str, object]:
    units = {TIME: "seconds per episode", COST: "tokens per agent and turn"}
    return {
        "name": suite.name,
        "title": suite.title,
        "size": suite.size,
        "configs": suite.configs,
        "command": command,
        "version": colearn.__version__,
        "seeds": list(figures.seeds),
        "rows": suite.rows,
        "columns": [
            {
                "task": column.task,
                "key": column.key,
                "title": column.title,
                "unit": units.get(column.key, _unit(column)),
                "best": "high" if column.high else "low",
            }
            for column in figures.columns
        ],
        "figures": {
            label: [None if value is None else dataclasses.asdict(value) for value in row]
            for label, row in figures.values.items()
        },
        "notes": list(figures.notes),
    }
