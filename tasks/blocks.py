"""The flat block world of StrBuild: palettes, commands, and the resulting blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from colearn.text.reasoning import without_reasoning

Cell = tuple[int, int]
"""(x, y): x to the right, y up, both from 0; z is always 0."""

AIR = "air"
PALETTES: tuple[tuple[str, str], ...] = (
    ("oak_planks", "stone"),
    ("white_concrete", "obsidian"),
)
"""The solid blocks of each agent; the palettes repeat from the third agent on. All agents may place
air."""

TEXTURES: Mapping[str, str] = {
    "oak_planks": "wood",
    "stone": "stone",
    "white_concrete": "concrete",
    "obsidian": "obsidian",
}

_BULLET = re.compile(r"(?:[-*+•]|[0-9]{1,4}[.)])\s+")
_LONG = re.compile(r"/setblock\s+(-?[0-9]{1,6})\s+(-?[0-9]{1,6})\s+(-?[0-9]{1,6})\s+(\S+)(?:\s|$)")
_SHORT = re.compile(r"([a-z]{1,2})([0-9]{1,3})\s+(\S+)(?:\s|$)")


@dataclass(frozen=True, slots=True)
class Block:
    """One cell of the world that is not air."""

    cell: Cell
    name: str
    owner: int
    """Number (from 0) of the agent that placed the block last."""


def palette(agent: int) -> tuple[str, str]:
    """The two solid blocks that agent number `agent` may place."""
    return PALETTES[agent % len(PALETTES)]


def target_cells(rows: Sequence[str]) -> tuple[Cell, ...]:
    """Returns the '#' cells of a text grid (first row at the top), ordered from left to right and
    bottom up."""
    return tuple(
        (x, y) for y, row in enumerate(reversed(rows)) for x, mark in enumerate(row) if mark == "#"
    )


def command_lines(text: str) -> Iterator[str]:
    """Returns the lines that may be commands, without reasoning, list bullets, code fences and
    empty lines."""
    for raw in without_reasoning(text).splitlines():
        line = raw.strip()
        if line and not line.startswith("```"):
            bullet = _BULLET.match(line)
            yield line[bullet.end() :] if bullet else line


def parse(
    text: str, *, size: tuple[int, int], allowed: Sequence[str], limit: int, short: bool
) -> tuple[list[tuple[Cell, str]], int]:
    """Parses the commands of one agent, in order, and counts the rejected lines.

    Each line holds one command: `/setblock x y z block`, or with `short` also `a1 block` (see
    `cell_name`). A list bullet, a code fence, empty lines, a `minecraft:` prefix and words after
    the block are tolerated. Every other line is rejected: prose, other commands, relative or
    fractional coordinates, cells outside `size` (width, height), cells with z other than 0, blocks
    not in `allowed`, and all commands after the first `limit` valid commands.
    """
    commands: list[tuple[Cell, str]] = []
    rejected = 0
    for line in command_lines(text):
        command = _command(line, short)
        if (
            command is None
            or not (0 <= command[0][0] < size[0] and 0 <= command[0][1] < size[1])
            or command[1] not in allowed
            or len(commands) == limit
        ):
            rejected += 1
        else:
            commands.append(command)
    return commands, rejected


def _command(line: str, short: bool) -> tuple[Cell, str] | None:
    match = _LONG.match(line)
    if match is not None:
        x, y, z, name = match.groups()
        return None if int(z) else ((int(x), int(y)), name.removeprefix("minecraft:"))
    match = _SHORT.match(line) if short else None
    if match is None:
        return None
    letters, row, name = match.groups()
    column = 0
    for letter in letters:
        column = 26 * column + ord(letter) - ord("a") + 1
    return (column - 1, int(row) - 1), name.removeprefix("minecraft:")


def cell_name(cell: Cell) -> str:
    """Name of a cell as on a chess board: columns are a, b, ..., z, aa, ..., and rows count from 1
    at the bottom."""
    x, y = cell
    head = "" if x < 26 else chr(ord("a") + x // 26 - 1)
    return f"{head}{chr(ord('a') + x % 26)}{y + 1}"


def build(commands: Iterable[Sequence[tuple[Cell, str]]]) -> tuple[Block, ...]:
    """Runs each agent's commands in turn in an empty world; later agents overwrite earlier ones."""
    world: dict[Cell, Block] = {}
    for owner, placed in enumerate(commands):
        for cell, name in placed:
            if name == AIR:
                world.pop(cell, None)
            else:
                world[cell] = Block(cell, name, owner)
    return tuple(world[cell] for cell in sorted(world))


def checkerboard(target: Sequence[Cell], agents: int) -> dict[Cell, tuple[int, str]]:
    """Assigns an owner and a block to each cell, so that no two neighbours share a texture.

    Cells with an even x + y are assigned in turn to the agents of the first palette, and the others
    to the agents of the second. With two agents the owner is (x + y) mod 2. Every agent alternates
    its two blocks; a single agent uses its first block on cells with an even x + y and its second
    on the others.
    """
    plan: dict[Cell, tuple[int, str]] = {}
    for parity in (0, 1):
        cells = [cell for cell in target if sum(cell) % 2 == parity]
        owners = range(parity, agents, 2) if agents > 1 else range(1)
        for count, cell in enumerate(cells):
            owner = owners[count % len(owners)]
            kind = parity if agents == 1 else count // len(owners) % 2
            plan[cell] = owner, palette(owner)[kind]
    return plan
