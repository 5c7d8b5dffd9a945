"""The benchmark row of each algorithm, read from benchmarks/results when a page is built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from colearn.config import shipped_configs

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table of results."""

    file: str
    header: str
    """The start of the table's first line, which tells it from other tables of the file."""
    label: str
    """The row's first cell, without backticks, or its first cells with ` | ` between."""
    what: str
    columns: Sequence[str] = ()
    """The columns to show after the first; all if empty."""


QUICKSTART = "Quickstart, IoU on held-out letters, before to after 2,400 joint actions"
TABLE1 = "Table 1 at the size `tiny`, one seed, in percent"
COLUMNS = ("TLDR Score", "arXiv Score", "StrBuild IoU", "HouseBuild IoU")
SEARCH = "A search team of embedded models, workflow A, five seeds"

ROWS = {
    **{
        name: Row("quickstart.md", "| IoU, held-out letters", name, QUICKSTART)
        for name in ("collm_cc", "collm_dc", "magrpo")
    },
    "coma": Row(
        "NEGATIVE.md",
        "| agents | method | joint actions to 90%",
        "4",
        "Four agents with private stakes, networks, one seed: a negative result",
    ),
    "untrained": Row("table1_tiny.md", "| | TLDR Time", "Raw Model", TABLE1, COLUMNS),
    "grpo": Row("table1_tiny.md", "| | TLDR Time", "GRPO", TABLE1, COLUMNS),
    "ac": Row("table1_tiny.md", "| | TLDR Time", "AC", TABLE1, COLUMNS),
    "at_grpo": Row(
        "stronger_mas.md",
        "| | Sudoku, 60 puzzles | Sokoban",
        "MAS + AT-GRPO, per-role policies",
        "Share of held-out items that greedy play solves, five seeds",
    ),
    "mhgpo": Row("search_teams.md", "| algorithm | seeds", "mhgpo", SEARCH),
    "mhgpo_rr": Row(
        "search_teams.md",
        "| algorithm | seeds",
        "mhgpo_rr",
        SEARCH,
    ),
    "mhgpo_is": Row(
        "search_teams.md",
        "| algorithm | seeds",
        "mhgpo_is",
        SEARCH.replace("workflow A", "workflow B"),
    ),
    "mappo": Row("search_teams.md", "| algorithm | seeds", "mappo", SEARCH),
}
ROWS["marshal"] = Row(
    "paper_rows.md",
    "| | start | 1/4 | 3/4 | end |",
    "marshal",
    "NashConv of Kuhn poker by self-play, three seeds; lower is better, uniform play has 0.917",
)
ROWS["mareinforce"] = Row(
    "propositions.md",
    "| problem | estimator | bias, computed",
    "dec_tiger H=3 | MA-REINFORCE, tree(4)",
    "Gradient estimate at a fixed policy, Dec-Tiger over three turns; no training was measured",
)
WITHOUT = (
    "distillation",
    "marloo",
    "maremax",
    "mappo_call",
    "mt_grpo",
    "trajectory_grpo",
    "spiral_rae",
)
"""Algorithms that no benchmark has measured."""
NOT_MEASURED = """\
Benchmark: not measured. Tests check its parts with hand-computed numbers and train one iteration.

"""


def benchmark_text(algorithm: str) -> str:
    """An algorithm's row as a Markdown table with a link to its page, or that it has none."""
    if algorithm in WITHOUT:
        return NOT_MEASURED
    row = ROWS[algorithm]
    header, cells = _cells(row)
    kept = [
        place
        for place, name in enumerate(header)
        if not row.columns or place == 0 or name in row.columns
    ]
    lines = ([header[i] for i in kept], ["---"] * len(kept), [cells[i] for i in kept])
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"Benchmark: {row.what} ([{row.file}](../results/{row.file})).\n\n{table}\n\n"


def paper_memory_text() -> str:
    return _paper_text("paper_memory.md")


def _paper_text(file: str) -> str:
    """The table of a file of benchmarks/results; configs without a row are named below it."""
    text = (RESULTS / file).read_text()
    table = "\n".join(line for line in text.splitlines() if line.startswith("|")) + "\n"
    papers = sorted(name for name in shipped_configs() if name.startswith("paper/"))
    left = [f"`{name}`" for name in papers if f"`{name}`" not in text]
    return table + (f"\nNot counted yet: {', '.join(left)}.\n" if left else "")


def _cells(row: Row) -> tuple[list[str], list[str]]:
    """The header and the row; KeyError if the file has no such row."""
    header: list[str] | None = None
    for line in (RESULTS / row.file).read_text().splitlines():
        if line.startswith(row.header):
            header = _split(line)
        elif not line.startswith("|"):
            header = None
        elif header is not None and f"{line.replace('`', '')} ".startswith(f"| {row.label} |"):
            return header, _split(line)
    raise KeyError(f"{row.file} has no row {row.label} below {row.header}")


def _split(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]
