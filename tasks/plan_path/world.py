"""Maps with walls, and the execution of moves on them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..moves import STEPS, Cell, Moves, distances, moved

_ATTEMPTS = 2000


@dataclass(frozen=True)
class Map:
    """A grid with walls, a start, and a goal that can be reached from it."""

    rows: int
    columns: int
    walls: frozenset[Cell]
    start: Cell
    goal: Cell

    @cached_property
    def free(self) -> frozenset[Cell]:
        """The cells that are not walls."""
        cells = ((r, c) for r in range(self.rows) for c in range(self.columns))
        return frozenset(cell for cell in cells if cell not in self.walls)

    @cached_property
    def oracle(self) -> dict[Cell, int]:
        """Shortest-path oracle: number of moves to the goal from each cell, computed by
        breadth-first search."""
        return distances(self.goal, self.free)

    def drawn(self, at: Cell) -> tuple[str, ...]:
        """The map as rows of '#' (wall), '.' (free), 'S' (the cell `at`) and 'G' (goal)."""
        marks = dict.fromkeys(self.walls, "#") | {self.goal: "G"} | {at: "S"}
        span = range(self.columns)
        return tuple("".join(marks.get((r, c), ".") for c in span) for r in range(self.rows))

    def __str__(self) -> str:
        return "/".join(self.drawn(self.start))


@dataclass(frozen=True, slots=True)
class Walk:
    """Result of a list of moves from a cell. The walk stops at the goal or before the first bad
    move."""

    end: Cell
    legal: bool
    """Whether no move left the map or ran into a wall."""
    shortest: int
    """Number of executed moves that are on a shortest path from the cell where they start."""


def walk(world: Map, at: Cell, moves: Moves) -> Walk:
    """Execute the moves one by one; moves after the goal or after a bad move are not executed."""
    shortest = 0
    for move in moves:
        if at == world.goal:
            break
        to = moved(at, move)
        if to not in world.free:
            return Walk(at, False, shortest)
        shortest += world.oracle[to] < world.oracle[at]
        at = to
    return Walk(at, True, shortest)


def shortest_path(world: Map, at: Cell) -> Moves:
    """A shortest list of moves to the goal."""
    path = []
    while at != world.goal:
        ways = {move: moved(at, move) for move in STEPS}
        move = next(m for m, to in ways.items() if world.oracle.get(to, 10**9) < world.oracle[at])
        path.append(move)
        at = ways[move]
    return tuple(path)


def draw_map(rows: int, columns: int, share: float, rng: np.random.Generator) -> Map:
    """Draws a map. Each cell is a wall with probability `share`. Start and goal are different free
    cells connected by a path.

    Errors: ValueError if 2000 drawn maps had no such path.
    """
    for _ in range(_ATTEMPTS):
        blocked = rng.random((rows, columns)) < share
        free = [(int(r), int(c)) for r, c in np.argwhere(~blocked)]
        if len(free) < 2:
            continue
        start, goal = (free[k] for k in rng.choice(len(free), size=2, replace=False))
        walls = frozenset((int(r), int(c)) for r, c in np.argwhere(blocked))
        world = Map(rows, columns, walls, start, goal)
        if start in world.oracle:
            return world
    raise ValueError(f"no map of {rows} x {columns} with a way at a share of walls of {share:g}")
