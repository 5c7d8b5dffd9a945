"""Prompts and feedback of StrBuild, in full and compact form, and a text rendering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..blocks import AIR, TEXTURES, Block, Cell, cell_name, palette

COMPACT_STEP = 0.25
COMPACT_BOUND = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayerFields:
    """Prompt fields about one agent."""

    number: int
    """The agent's number, from 0."""
    name: str
    agents: int
    limit: int
    """Maximum number of commands per turn."""


Hint = tuple[str, tuple[Cell, ...]]
"""A heading in the feedback, and the cells listed under the heading."""


def full_prompt(
    rows: Sequence[str], seat: PlayerFields, *, show_grid: bool, show_limit: bool
) -> str:
    """The paper's first prompt (E.3). Without `show_grid`, all lines about the grid are omitted."""
    width, height = len(rows[0]), len(rows)
    lines = [
        f"You are Player {seat.number + 1} in a {seat.agents}-person Minecraft building team. "
        "You will place SOME of the blocks for the final build. Output must be Minecraft commands "
        "only (no markdown, no code fences, no extra text).",
        "",
    ]
    if show_grid:
        lines += [
            "The target is a character grid made of '#' and '.'. Its size matches the bbox and "
            "target rows. Output /setblock commands for a subset of '#' positions.",
            "",
            "Target grid (top-down rows):",
            *rows,
            "",
        ]
    lines += [
        "WORLD bbox (inclusive):",
        "- from: [0, 0, 0]",
        f"- to: [{width - 1}, {height - 1}, 0]",
        "",
        "Coordinate mapping (absolute coords):",
        "- Let (min_x, min_y, min_z) be bbox.from and (max_x, max_y, max_z) be bbox.to.",
        "- x increases from min_x to max_x (left to right).",
        "- y increases from min_y to max_y (bottom to top).",
        "- z is constant (min_z == max_z)",
        "",
        "Available blocks (use ONLY these):",
        *(f"- {name}" for name in (*palette(seat.number), AIR)),
        "",
        "Constraints:",
        "- Output ONLY Minecraft commands, one per line.",
        "- Allowed commands: /setblock only.",
        "- Use absolute integer coordinates only (no ~).",
    ]
    if show_grid:
        lines.append("- Place blocks ONLY at '#' positions; leave '.' as air.")
    lines += [
        "- Adjacent blocks (sharing a side) must NOT be the same texture.",
        "- Every coordinate must be within the bbox.",
    ]
    if show_limit:
        lines.append(f"- At most {seat.limit} commands.")
    return "\n".join([*lines, "", "Format: /setblock <x> <y> <z> <block>"])


def compact_prompt(rows: Sequence[str], seat: PlayerFields, *, show_grid: bool) -> str:
    """The first prompt as words separated by single spaces: width, height, the grid with the name
    of each '#' cell, and the agent's blocks and limit."""
    lines = [f"grid {len(rows[0])} {len(rows)}"]
    if show_grid:
        for y, row in zip(range(len(rows) - 1, -1, -1), rows, strict=True):
            cells = (cell_name((x, y)) if mark == "#" else "." for x, mark in enumerate(row))
            lines.append(" ".join(cells))
    blocks = " ".join(palette(seat.number))
    return "\n".join([*lines, f"you {seat.name} blocks {blocks} max {seat.limit}"])


def position_hints(blocks: Sequence[Block], target: Sequence[Cell]) -> tuple[Hint, ...]:
    """Lists the empty target cells and the blocks elsewhere, for all agents."""
    filled = {block.cell for block in blocks}
    return (
        ("missing", tuple(cell for cell in target if cell not in filled)),
        ("extra", tuple(sorted(filled.difference(target)))),
    )


_HEADINGS = {
    "missing": "'#' positions that are still empty",
    "extra": "Blocks outside the target",
    "target": "Letter positions",
}


def full_feedback(
    hints: Sequence[Hint], *, turn: int, horizon: int, reward: float, advice: Sequence[str] = ()
) -> str:
    """The simulated player's feedback before every turn after the first; `turn` counts from 1."""
    lines = [f"Turn {turn} of {horizon}. Reward of the last build: {reward:.2f} / 2.00."]
    for name, cells in hints:
        positions = ", ".join(f"({x}, {y}, 0)" for x, y in cells)
        lines.append(f"{_HEADINGS[name]}: {positions or 'none'}.")
    lines += advice
    lines.append(
        "Every turn starts from an empty world: output all your /setblock commands again, "
        "one per line."
    )
    return "\n".join(lines)


def share_advice(seat: PlayerFields) -> tuple[str, ...]:
    """The instruction for splitting the letter positions in CoMLRL's feedback."""
    return (
        f"Choose about 1/{seat.agents} of the letter positions; the others place the rest.",
        "Avoid choosing positions that share a side.",
        f"At most {seat.limit} commands.",
        f"Available blocks (use ONLY these): {', '.join((*palette(seat.number), AIR))}.",
    )


def compact_feedback(hints: Sequence[Hint], *, reward: float) -> str:
    """Returns one line with the reward, rounded to quarters within [-2, 2], and then each heading
    with its cells."""
    bounded = min(max(reward, -COMPACT_BOUND), COMPACT_BOUND)
    quarters = round(bounded / COMPACT_STEP) * COMPACT_STEP
    words = [f"reward {quarters:g}"]
    for name, cells in hints:
        if cells:
            words.append(" ".join((name, *map(cell_name, cells))))
    return " ".join(words)


def picture(rows: Sequence[str], blocks: Sequence[Block]) -> str:
    """Shows three grids side by side: the target, the owners' numbers (from 1), and the first
    letters of the textures."""
    owner = {block.cell: str((block.owner + 1) % 10) for block in blocks}
    kind = {block.cell: TEXTURES[block.name][0] for block in blocks}
    lines = []
    for y, row in zip(reversed(range(len(rows))), rows, strict=True):
        cells = [(x, y) for x in range(len(row))]
        columns = ["".join(marks.get(cell, ".") for cell in cells) for marks in (owner, kind)]
        lines.append("   ".join([row, *columns]))
    return "\n".join(lines)
