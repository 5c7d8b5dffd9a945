"""A table of results, written as Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

from colearn.text.printable import cell, printable


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultCell:
    text: str
    note: str = ""
    """Text in small print below the main text: the interval, or a remark on missing seeds."""
    best: bool = False
    blank: bool = False
    """Whether the cell is empty, as for an algorithm compared with itself."""


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
        """The table as CSV, with a row per name and separate columns for intervals."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        noted = [any(cells[n].note for _, cells in self.rows) for n in range(len(self.columns))]
        head = [""]
        for column, note in zip(self.columns, noted, strict=True):
            head += [column, f"{column}, 95% interval"] if note else [column]
        writer.writerow(map(cell, head))
        for name, cells in self.rows:
            row = [name]
            for content, note in zip(cells, noted, strict=True):
                row += [content.text, content.note] if note else [content.text]
            writer.writerow(map(cell, row))
        return out.getvalue()

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
