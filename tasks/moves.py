"""Grid moves: cell names, parsing and formatting of move lists, distances."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping

from colearn.text.reasoning import without_reasoning

Cell = tuple[int, int]
"""(row, column), both from 0 at the top left."""

STEPS: Mapping[str, Cell] = {"U": (-1, 0), "D": (1, 0), "L": (0, -1), "R": (0, 1)}


def cell_name(cell: Cell) -> str:
    """Name of a cell: the column's letter and the row's number, from `a1` at the top left."""
    row, column = cell
    return f"{letters(column)}{row + 1}"


def letters(number: int) -> str:
    """Letters for a number: `a` to `z` for 0 to 25, then `aa`, `ab`, ..."""
    head = "" if number < 26 else chr(ord("a") + number // 26 - 1)
    return f"{head}{chr(ord('a') + number % 26)}"


Moves = tuple[str, ...]
"""A list of moves: keys of `STEPS`."""

LONGEST = 200
"""Maximum number of moves in an answer; a longer list is rejected."""


def moved(cell: Cell, move: str) -> Cell:
    """The cell that one move reaches."""
    row, column = STEPS[move]
    return cell[0] + row, cell[1] + column


def distance(first: Cell, second: Cell) -> int:
    """Manhattan distance."""
    return abs(first[0] - second[0]) + abs(first[1] - second[1])


def distances(goal: Cell, free: Collection[Cell]) -> dict[Cell, int]:
    """Number of moves to the goal from every free cell that can reach it, by breadth-first
    search."""
    lengths = {goal: 0}
    queue = deque([goal])
    while queue:
        cell = queue.popleft()
        for move in STEPS:
            near = moved(cell, move)
            if near in free and near not in lengths:
                lengths[near] = lengths[cell] + 1
                queue.append(near)
    return lengths


def written(moves: Moves) -> str:
    """Formats moves as `["U","R"]`."""
    return "[" + ",".join(f'"{move}"' for move in moves) + "]"


def read(text: str) -> Moves | None:
    """Parses a list of U, D, L, R in brackets, quoted or not; None for anything else, for an empty
    list and for more than `LONGEST` moves."""
    text = without_reasoning(text).strip()
    if not (text.startswith("[") and text.endswith("]")):
        return None
    names = [name.strip() for name in text[1:-1].split(",")]
    bare = (name[1:-1] if name[:1] in "\"'" and name[:1] == name[-1:] else name for name in names)
    return _checked(list(bare))


def compact(moves: Moves) -> str:
    """Formats moves as `U R`."""
    return " ".join(moves)


def read_compact(text: str) -> Moves | None:
    """Parses moves separated by spaces; None in the same cases as `read`."""
    return _checked(without_reasoning(text).split())


def _checked(names: list[str]) -> Moves | None:
    known = all(name in STEPS for name in names)
    return tuple(names) if known and 0 < len(names) <= LONGEST else None
