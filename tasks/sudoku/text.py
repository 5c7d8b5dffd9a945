"""Prompts and answer parsing of Sudoku, in the paper's form (C.2) and a compact form."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import combinations
from math import isqrt
from typing import Any

from ..answers import plain_value
from ..moves import letters
from ..tool_team import TOOL, ToolRun
from .grid import Fill, Grid, seen, units

_TOOL = """\
You are an AI assistant designed to be helpful. Utilize your programming expertise to address the \
task. Propose Python code (within a single python code block) for the user to run. Ensure each \
response contains only ONE code block. Use the 'print' function to output EITHER:
(A) the completed grid as a JSON array of arrays, OR
(B) a JSON list of fill steps [r,c,v] using 1-based indices.

Formatting requirements:
* Begin the Python block with ```python and end with ```.
* The program's output is the Sudoku solution, e.g. {example}
* Print ONLY the JSON (no extra text, no comments).

Task:
{task}

Environment:
- size: {size}
- subgrid_size: {box}"""

_PLAN = """\
You are a planning and reasoning agent. You will receive:
* The original task description{received}
Your job is to reason carefully, decide the final Sudoku solution, and format your response \
EXACTLY as specified.

Instructions:
* {verify} the Sudoku rules: rows, columns, and sub-grids must contain unique digits in \
1..{size}.{adopt}
* Keep reasoning concise but explicit: explain why the final result is valid.

FORMATTING IS MANDATORY. Give the final answer AFTER the line that begins with ####.
You may return EITHER:
- a completed grid as JSON, OR
- a JSON list of fill steps [r,c,v], 1-based indices.
Examples:
#### {example}
#### [[1,3,4],[2,1,2]]

Task:
{task}{tool}"""

_TASK = """\
Solve the {size}x{size} Sudoku. Fill digits 1..{size}; rows, columns, and sub-grids must have \
unique digits. The puzzle's own digits must stay.
Current puzzle (dots denote blanks):
{puzzle}"""

_FILLED = """
After your team's earlier answers the grid is (an answer overwrites what they filled in):
{grid}"""


def rows_of(grid: Grid) -> str:
    """One line for each row, with digits separated by spaces and dots for blanks."""
    return "\n".join(" ".join(str(digit or ".") for digit in row) for row in grid)


def full_prompt(clues: Grid, grid: Grid, agent: str, run: ToolRun[Any] | None, single: bool) -> str:
    """The paper's prompt; `single` leaves out everything about the tool user."""
    size = len(clues)
    span = list(range(1, size + 1))
    example = f"[{json.dumps(span)}, ..., {json.dumps(span[::-1])}]".replace(", ", ",")
    task = _TASK.format(size=size, puzzle=rows_of(clues))
    if grid != clues:
        task += _FILLED.format(grid=rows_of(grid))
    if agent == TOOL:
        return _TOOL.format(example=example, task=task, size=size, box=isqrt(size))
    if single:
        received = adopt = tool = ""
        verify = "Read the task and verify your result against"
    else:
        received = (
            "\n* The Tool Agent's code\n* The code execution output (a JSON grid or JSON steps)"
        )
        verify = "Read the task, inspect the code, and verify the execution output against"
        adopt = (
            "\n* If the tool's output is a complete, valid solution, adopt it.\n* If it is "
            "incomplete or violates constraints, correct it or provide your own."
        )
        tool_run = ToolRun("(none yet)", "(none yet)", False, None) if run is None else run
        proposal = "none" if tool_run.answer is None else written(tool_run.answer)
        tool = (
            f"\n\nTool Code:\n{tool_run.code}\n\nTool Execution Output:\n{tool_run.output}\n\n"
            f"Tool Proposed Solution: {proposal}"
        )
    return _PLAN.format(
        received=received,
        verify=verify,
        adopt=adopt,
        size=size,
        example=example,
        task=task,
        tool=tool,
    )


def compact_prompt(clues: Grid, grid: Grid, agent: str, run: ToolRun[Any] | None) -> str:
    """Returns a prompt that lists the agent's name, the digits excluded for each blank (`a_not_1`),
    each pair of blanks that must differ (`a_not_b`), the fills so far (`a_4`), and the tool user's
    fills. These constraints define the puzzle completely, so the prompt does not list cells."""
    names = blank_names(clues)
    words = [agent]
    words += [f"{name}_not_{digit}" for cell, name in names.items() for digit in seen(clues, cell)]
    words += [
        f"{name}_not_{neighbour}"
        for (cell, name), (near, neighbour) in combinations(names.items(), 2)
        if any(cell in unit and near in unit for unit in units(len(clues)))
    ]
    filled_cells = [(r + 1, c + 1, grid[r][c]) for r, c in names if grid[r][c]]
    words += compact(filled_cells, clues).split()
    if agent != TOOL and run is not None:
        words += ["tool", "none" if run.answer is None else compact(run.answer, clues)]
    return " ".join(words)


def blank_names(clues: Grid) -> dict[tuple[int, int], str]:
    """Maps each blank's cell (row, column), from 0, to a letter; letters follow the reading
    order."""
    span = range(len(clues))
    blanks = [(r, c) for r in span for c in span if not clues[r][c]]
    return {cell: letters(number) for number, cell in enumerate(blanks)}


def compact(fills: Sequence[Fill], clues: Grid) -> str:
    """Writes a word for each fill of a blank: `b_4` puts 4 into the puzzle's second blank."""
    names = blank_names(clues)
    return " ".join(f"{names[r - 1, c - 1]}_{digit}" for r, c, digit in fills)


def written(fills: Sequence[Fill]) -> str:
    """A JSON list of fills."""
    return json.dumps([list(fill) for fill in fills], separators=(",", ":"))


def read(text: str, size: int) -> tuple[Fill, ...] | None:
    """Parses a grid or a list of fills in JSON; None for anything else, an empty list included."""
    value = plain_value(text)
    if not isinstance(value, (list, tuple)) or not value:
        return None
    rows = [row for row in value if isinstance(row, (list, tuple)) and all(map(_whole, row))]
    if len(rows) < len(value):
        return None
    if len(rows) == size and all(len(row) == size for row in rows):
        fills = [
            (r, c, digit)
            for r, row in enumerate(rows, start=1)
            for c, digit in enumerate(row, start=1)
        ]
        return tuple(fills) if all(0 <= digit <= size for _, _, digit in fills) else None
    if all(len(row) == 3 and all(1 <= number <= size for number in row) for row in rows):
        return tuple((r, c, digit) for r, c, digit in rows)
    return None


def read_compact(text: str, clues: Grid) -> tuple[Fill, ...] | None:
    """Parses fills as written by `compact`; None for anything else."""
    known = {
        f"{name}_{digit}": (r + 1, c + 1, digit)
        for (r, c), name in blank_names(clues).items()
        for digit in range(1, len(clues) + 1)
    }
    words = text.split()
    return tuple(known[word] for word in words) if words and known.keys() >= set(words) else None


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
