"""Figures of a page, which are also written as SVG and PDF files for papers."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from colearn.text.printable import printable

FOLDER = "figures"
"""Folder beside the page that holds the files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A figure of a page."""

    caption: str
    svg: str
    stem: str
    """Path of the files beside the page, without the suffix; "" if none are written."""


class Plots:
    """The figures of one page. written: whether `write` follows, so that the page may link to the
    files."""

    def __init__(self, *, written: bool) -> None:
        self._written = written
        self._figures: dict[str, tuple[str, Figure]] = {}
        """SVG and figure by file name, in lower case: some file systems ignore case."""

    def add(self, name: str, caption: str, figure: Figure) -> Plot:
        """Draw a figure. name: gives the file its name; other characters than letters, digits and
        - . _ are replaced, and equal names get a number."""
        stem = file = re.sub(r"[^a-z0-9_.-]+", "_", name.lower())[:80].strip("._") or "figure"
        number = 1
        while file in self._figures:
            number += 1
            file = f"{stem}_{number}"
        svg = svg_of(figure)
        self._figures[file] = svg, figure
        return Plot(caption=caption, svg=svg, stem=f"{FOLDER}/{file}" if self._written else "")

    def write(self, out: Path) -> None:
        """Write the figures into the folder `figures` of a new folder `out`."""
        folder = out / FOLDER
        folder.mkdir()
        for file, (svg, figure) in self._figures.items():
            write_files(figure, svg, folder / file)


_LONGEST = 60
"""Maximum number of characters of a name in a figure."""


def drawn_text(text: str) -> str:
    """A name as one line of a figure, in which `$` begins no formula."""
    line = " ".join(printable(text).split())
    line = line if len(line) <= _LONGEST else f"{line[:_LONGEST]} ..."
    return line.replace("$", r"\$")


def svg_of(figure: Figure) -> str:
    """Draw a figure. Its layout is kept for a later `write_files`."""
    buffer = io.StringIO()
    # fixed ids and no date: the same runs make the same file
    with matplotlib.rc_context({"svg.hashsalt": "colearn"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    figure.set_layout_engine("none")
    return buffer.getvalue()


def write_files(figure: Figure, svg: str, path: Path) -> None:
    """Write the figure as `path`.svg and `path`.pdf."""
    path.with_name(f"{path.name}.svg").write_text(svg, encoding="utf-8")
    with matplotlib.rc_context({"pdf.fonttype": 42}):  # TrueType, which publishers ask for
        figure.savefig(path.with_name(f"{path.name}.pdf"), metadata={"CreationDate": None})
