"""Rooms with boxes: rules of pushes, corner deadlocks, a solver, and a generator of solvable
rooms."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..moves import STEPS, Cell, Moves, distance, distances, moved

_ATTEMPTS = 2000


@dataclass(frozen=True, slots=True)
class Board:
    """Positions of the player and the boxes."""

    player: Cell
    boxes: frozenset[Cell]


@dataclass(frozen=True, slots=True)
class Room:
    """A room surrounded by walls, its goals, and its initial board."""

    rows: int
    columns: int
    walls: frozenset[Cell]
    goals: frozenset[Cell]
    start: Board

    def drawn(self, board: Board) -> tuple[str, ...]:
        """Rows in standard Sokoban notation: # wall, @ player, $ box, . goal, * box on goal, +
        player on goal, and '-' for free floor."""
        marks = dict.fromkeys(self.walls, "#") | dict.fromkeys(self.goals, ".")
        marks |= {box: "*" if box in self.goals else "$" for box in board.boxes}
        marks[board.player] = "+" if board.player in self.goals else "@"
        span = range(self.columns)
        return tuple("".join(marks.get((r, c), "-") for c in span) for r in range(self.rows))

    def solved(self, board: Board) -> bool:
        """Whether all boxes are on goals."""
        return board.boxes <= self.goals

    def __str__(self) -> str:
        return "/".join(self.drawn(self.start))


def after_move(room: Room, board: Board, move: str) -> Board | None:
    """The board after one move; None if a wall or an immovable box blocks it."""
    to = moved(board.player, move)
    if to in room.walls:
        return None
    if to not in board.boxes:
        return Board(to, board.boxes)
    beyond = moved(to, move)
    if beyond in room.walls or beyond in board.boxes:
        return None
    return Board(to, board.boxes - {to} | {beyond})


def in_corner(room: Room, box: Cell) -> bool:
    """Whether a box can never move again: it is not on a goal, has a wall above or below, and a
    wall on one side."""
    if box in room.goals:
        return False
    upright = any(moved(box, move) in room.walls for move in "UD")
    return upright and any(moved(box, move) in room.walls for move in "LR")


@dataclass(frozen=True, slots=True)
class MovesResult:
    """Result of a list of moves. Execution ends when the room is solved or before the first
    impossible move."""

    end: Board
    legal: bool
    """Whether no move ran into a wall or pushed a box that could not move."""
    deadlocked: bool
    """Whether a move pushed a box into a corner that is not a goal."""


def play(room: Room, board: Board, moves: Moves) -> MovesResult:
    """Execute the moves one by one; moves after the solution or after a bad move are not
    executed."""
    deadlocked = False
    for move in moves:
        if room.solved(board):
            break
        after = after_move(room, board, move)
        if after is None:
            return MovesResult(board, False, deadlocked)
        deadlocked |= any(in_corner(room, box) for box in after.boxes - board.boxes)
        board = after
    return MovesResult(board, True, deadlocked)


def potential(room: Room, board: Board) -> int:
    """psi: minus the sum over boxes of the Manhattan distance to the nearest goal."""
    return -sum(min(distance(box, goal) for goal in room.goals) for box in board.boxes)


def seen_from(origin: Cell, cell: Cell) -> str:
    """Position of another cell relative to a cell, such as `D2R1` or `U1`; `here` for the same
    cell."""
    down, right = cell[0] - origin[0], cell[1] - origin[1]
    vertical = f"{'D' if down > 0 else 'U'}{abs(down)}" if down else ""
    return vertical + (f"{'R' if right > 0 else 'L'}{abs(right)}" if right else "") or "here"


def solve(room: Room, board: Board) -> Moves | None:
    """A shortest list of moves that solves the board, by breadth-first search; None if there is
    none."""
    ways: dict[Board, tuple[Board, str] | None] = {board: None}
    queue = deque([board])
    while queue:
        board = queue.popleft()
        if room.solved(board):
            moves = []
            while (step := ways[board]) is not None:
                board, move = step
                moves.append(move)
            return tuple(reversed(moves))
        for move in STEPS:
            after = after_move(room, board, move)
            if after is None or after in ways:
                continue
            if not any(in_corner(room, box) for box in after.boxes - board.boxes):
                ways[after] = (board, move)
                queue.append(after)
    return None


def ways_to_push(room: Room, board: Board) -> tuple[Moves, ...]:
    """Returns the moves for every possible push: a shortest walk to the cell behind the box, and
    then the push."""
    span = ((r, c) for r in range(room.rows) for c in range(room.columns))
    floor = {cell for cell in span if cell not in room.walls and cell not in board.boxes}
    ways = []
    for box in sorted(board.boxes):
        for push in STEPS:
            behind = (2 * box[0] - moved(box, push)[0], 2 * box[1] - moved(box, push)[1])
            if behind not in floor or moved(box, push) not in floor:
                continue
            remaining = distances(behind, floor)
            if board.player in remaining:
                ways.append((*_walk(board.player, remaining), push))
    return tuple(ways)


def _walk(at: Cell, remaining: Mapping[Cell, int]) -> Moves:
    walk = []
    while remaining[at]:
        walk.append(
            next(m for m in STEPS if remaining.get(moved(at, m), remaining[at]) < remaining[at])
        )
        at = moved(at, walk[-1])
    return tuple(walk)


def draw_room(size: int, boxes: int, walls: float, rng: np.random.Generator) -> Room:
    """Draws a solvable room. Inner cells are walls with probability `walls`. Boxes, goals and
    player are on different free cells.

    Errors: ValueError if none of 2000 drawn rooms can be solved.
    """
    rim = {(r, c) for r in range(size) for c in range(size) if {r, c} & {0, size - 1}}
    inner = [(r, c) for r in range(1, size - 1) for c in range(1, size - 1)]
    for _ in range(_ATTEMPTS):
        blocked = rng.random(len(inner)) < walls
        free = [cell for cell, wall in zip(inner, blocked, strict=True) if not wall]
        if len(free) < 2 * boxes + 1:
            continue
        cells = [free[k] for k in rng.choice(len(free), size=2 * boxes + 1, replace=False)]
        board = Board(cells[0], frozenset(cells[1 : boxes + 1]))
        around = frozenset(rim.union(inner).difference(free))
        room = Room(size, size, around, frozenset(cells[boxes + 1 :]), board)
        if not any(in_corner(room, box) for box in board.boxes) and solve(room, board):
            return room
    raise ValueError(f"no solvable room of size {size} with {boxes} box(es), walls {walls:g}")
