"""A table of results, written as Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from colearn.runs.over_seeds import MeanEstimate
from colearn.text.printable import cell, printable

from .show import show_estimate

Numbers = tuple[float | None, float | None, float | None]
"""A value and the bounds of its interval, as far as they are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultCell:
    text: str
    interval: str = ""
    remark: str = ""
    """A remark on missing seeds."""
    best: bool = False
    blank: bool = False
    """Whether the cell is empty, as for an algorithm compared with itself."""
    numbers: Numbers = (None, None, None)

    @property
    def note(self) -> str:
        """Text in small print below the main text."""
        return f"{self.interval} {self.remark}".strip()

    @property
    def value(self) -> float | str | None:
        """The number that the cell shows; its text if the cell shows none, and None for a dash."""
        return self.text if self.numbers[0] is None and self.text != "-" else self.numbers[0]


def numbers_of(value: MeanEstimate | None) -> Numbers:
    return (None, None, None) if value is None else (value.mean, value.low, value.high)


def estimate_cell(
    value: MeanEstimate | None, seeds: int | None = None, best: bool = False
) -> ResultCell:
    """A cell with a mean and its interval. If fewer than `seeds` have a value, or there is one, the
    cell says so."""
    text, bracket, rest = show_estimate(value).partition(" [")
    remark = ""
    if value is not None and seeds is not None and value.seeds < seeds:
        remark = f"{value.seeds} of {seeds} seeds"
    elif value is not None and not bracket:
        remark = "one seed"
    return ResultCell(
        text=text,
        interval=f"[{rest}" if bracket else "",
        remark=remark,
        best=best,
        numbers=numbers_of(value),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultTable:
    name: str
    """Stem of the table's file names."""
    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[ResultCell, ...]], ...]
    """The rows: each has a name, and one cell for each column."""

    def markdown(self) -> str:
        head = "| | " + " | ".join(map(_plain, self.columns)) + " |"
        rule = "|---|" + "---|" * len(self.columns)
        body = [
            f"| {_plain(name)} | " + " | ".join(_markdown(one) for one in cells) + " |"
            for name, cells in self.rows
        ]
        return "\n".join(
            [f"## {_line(self.title)}", "", printable(self.note), "", head, rule, *body, ""]
        )

    def csv(self) -> str:
        """The table as CSV, with a row per name. A column with intervals is followed by the columns
        `low` and `high` of their bounds, one with remarks by a column of them. Numbers have ten
        digits; a value that does not exist is empty."""
        columns: list[tuple[str, list[float | str | None]]] = []
        for number, title in enumerate(self.columns):
            cells = [cells[number] for _, cells in self.rows]
            columns.append((title, [one.value for one in cells]))
            if any(one.interval for one in cells):
                columns.append((f"{title}, low", [one.numbers[1] for one in cells]))
                columns.append((f"{title}, high", [one.numbers[2] for one in cells]))
            if any(one.remark for one in cells):
                columns.append((f"{title}, remark", [one.remark for one in cells]))
        names = ("", [name for name, _ in self.rows])
        return csv_text([names, *columns])

    def latex(self) -> str:
        """The table as a LaTeX `tabular` with booktabs' rules."""
        lines = [
            f"% {_line(self.title)}",
            "% needs \\usepackage{booktabs}",
            f"\\begin{{tabular}}{{l{'r' * len(self.columns)}}}",
            "\\toprule",
            " & ".join(["", *map(_latex, self.columns)]) + r" \\",
            "\\midrule",
            *(" & ".join([_latex(n), *map(_latex_cell, cells)]) + r" \\" for n, cells in self.rows),
            "\\bottomrule",
            "\\end{tabular}",
        ]
        return "\n".join(lines) + "\n"


def csv_text(columns: Sequence[tuple[str, Sequence[float | str | None]]]) -> str:
    """Columns with their titles as CSV. Numbers have ten digits; None is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([cell(title) for title, _ in columns])
    for row in zip(*(values for _, values in columns), strict=True):
        writer.writerow(map(_csv_value, row))
    return out.getvalue()


def _csv_value(value: float | str | None) -> str:
    if value is None:
        return ""
    return cell(value) if isinstance(value, str) else f"{value:.10g}"


def _markdown(content: ResultCell) -> str:
    text = _plain(content.text)
    return f"{f'**{text}**' if content.best else text} {_plain(content.note)}".strip()


_LATEX = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}


def _latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in _line(text))


def _latex_cell(content: ResultCell) -> str:
    text = rf"\textbf{{{_latex(content.text)}}}" if content.best else _latex(content.text)
    return f"{text} {_latex(content.note)}".strip()


def _plain(text: str) -> str:
    return _line(text).replace("|", "\\|")


def _line(text: str) -> str:
    return " ".join(printable(text).split())
