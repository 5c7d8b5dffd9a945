"""Sudoku grids: legality, unique solutions and puzzles."""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt

import numpy as np

Grid = tuple[tuple[int, ...], ...]
"""Rows of digits, 0 for a blank."""

Fill = tuple[int, int, int]
"""(row, column, digit): row and column count from 1; digit 0 clears a cell."""


def units(size: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """The rows, columns and sub-grids as cells (row, column) from 0."""
    box, span = isqrt(size), range(size)
    rows = [tuple((r, c) for c in span) for r in span]
    columns = [tuple((r, c) for r in span) for c in span]
    boxes = [
        tuple((top + r, left + c) for r in range(box) for c in range(box))
        for top in range(0, size, box)
        for left in range(0, size, box)
    ]
    return (*rows, *columns, *boxes)


def legal(grid: Grid) -> bool:
    """Whether no digit repeats in a row, column or sub-grid."""
    for unit in units(len(grid)):
        digits = [grid[r][c] for r, c in unit if grid[r][c]]
        if len(set(digits)) < len(digits):
            return False
    return True


def seen(grid: Grid, cell: tuple[int, int]) -> list[int]:
    """The digits in the row, column and sub-grid of a cell, in ascending order. The cell is (row,
    column), from 0."""
    near = {grid[r][c] for unit in units(len(grid)) if cell in unit for r, c in unit}
    return sorted(near - {0})


def full(grid: Grid) -> bool:
    """Whether no blank is left."""
    return all(digit for row in grid for digit in row)


def filled(grid: Grid, fills: tuple[Fill, ...]) -> Grid:
    """Returns the grid after the fills, applied in order; a fill may overwrite an earlier one."""
    rows = [list(row) for row in grid]
    for r, c, digit in fills:
        rows[r - 1][c - 1] = digit
    return tuple(map(tuple, rows))


def solutions(grid: Grid, rng: np.random.Generator | None = None) -> Iterator[Grid]:
    """Yields every complete legal grid that keeps the digits of the legal `grid`; the order is
    random if `rng` is given.

    Backtracks over the blank with the fewest candidates, which are stored as bits.
    """
    size, box = len(grid), isqrt(len(grid))
    rows, columns, boxes = [0] * size, [0] * size, [0] * size
    cells = [list(row) for row in grid]
    blanks = {(r, c) for r in range(size) for c in range(size) if not cells[r][c]}

    def place(r: int, c: int, digit: int) -> None:
        bit = 1 << digit
        rows[r] ^= bit
        columns[c] ^= bit
        boxes[r // box * box + c // box] ^= bit

    def used(cell: tuple[int, int]) -> int:
        r, c = cell
        return rows[r] | columns[c] | boxes[r // box * box + c // box]

    def search() -> Iterator[Grid]:
        if not blanks:
            yield tuple(map(tuple, cells))
            return
        cell = min(blanks, key=lambda blank: (-used(blank).bit_count(), blank))
        used_digits = used(cell)
        digits = [digit for digit in range(1, size + 1) if not used_digits >> digit & 1]
        if rng is not None:
            digits = [digits[k] for k in rng.permutation(len(digits))]
        blanks.remove(cell)
        for digit in digits:
            place(*cell, digit)
            cells[cell[0]][cell[1]] = digit
            yield from search()
            place(*cell, digit)
        cells[cell[0]][cell[1]] = 0
        blanks.add(cell)

    for r, row in enumerate(grid):
        for c, digit in enumerate(row):
            if digit:
                place(r, c, digit)
    yield from search()


def unique_solution(grid: Grid) -> Grid | None:
    """Returns the only solution; None if there is no solution or more than one."""
    candidates = solutions(grid)
    first = next(candidates, None)
    return first if first is not None and next(candidates, None) is None else None


def puzzle(size: int, blanks: int, rng: np.random.Generator) -> Grid:
    """A random complete grid with up to `blanks` empty cells. Cells are emptied one by one in
    random order, each only if the solution stays unique."""
    empty: Grid = ((0,) * size,) * size
    grid = next(solutions(empty, rng))
    remaining = blanks
    for k in rng.permutation(size * size):
        if not remaining:
            break
        r, c = divmod(int(k), size)
        fewer = filled(grid, ((r + 1, c + 1, 0),))
        if unique_solution(fewer) is not None:
            grid, remaining = fewer, remaining - 1
    return grid
