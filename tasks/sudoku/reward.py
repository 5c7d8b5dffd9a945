"""The terms of Sudoku's rewards (Stronger-MAS, B.3). Each is a function of the answer."""

from __future__ import annotations

from ..local_reward import local_reward, weights
from .grid import Fill, Grid, filled, full, legal

PLAN = weights(format=0.10, legal=0.10, progress=0.80)
TOOL = weights(format=0.10, executes=0.10, sane=0.80)


def solved(grid: Grid) -> bool:
    """Whether the grid is complete and legal."""
    return full(grid) and legal(grid)


def team(after: Grid) -> float:
    """r_team = 1{solved}."""
    return float(solved(after))


def format_score(fills: tuple[Fill, ...] | None) -> float:
    """s_fmt: 1 if a grid or a list of fills was read, with digits and indices within bounds."""
    return float(fills is not None)


def legal_score(clues: Grid, fills: tuple[Fill, ...], after: Grid) -> float:
    """s_legal: 1 if no row, column or sub-grid contains a digit twice and no fill changes a
    clue."""
    return float(keeps(clues, fills) and legal(after))


def progress_score(before: Grid, after: Grid) -> float:
    """s_prog: the number of newly filled blanks divided by the number of cells."""
    newly = sum(
        not old and bool(new)
        for olds, news in zip(before, after, strict=True)
        for old, new in zip(olds, news, strict=True)
    )
    return newly / len(before) ** 2


def execution_score(ran: bool) -> float:
    """s_exec: 1 if there was no runtime error and no timeout."""
    return float(ran)


def sanity_score(clues: Grid, before: Grid, fills: tuple[Fill, ...]) -> float:
    """s_san: 1 if the fills leave a legal grid and do not change the puzzle's clues."""
    return float(keeps(clues, fills) and legal(filled(before, fills)))


def keeps(clues: Grid, fills: tuple[Fill, ...]) -> bool:
    """Whether no fill changes a clue."""
    return all(clues[r - 1][c - 1] in (0, digit) for r, c, digit in fills)


def plan_reward(clues: Grid, before: Grid, fills: tuple[Fill, ...] | None, after: Grid) -> float:
    """r_loc of the planner; m = 1 if the answer was read."""
    scores = {
        "format": format_score(fills),
        "legal": 0.0 if fills is None else legal_score(clues, fills, after),
        "progress": progress_score(before, after),
    }
    return local_reward(PLAN, scores, available=fills is not None)


def tool_reward(clues: Grid, grid: Grid, ran: bool, fills: tuple[Fill, ...] | None) -> float:
    """r_loc of the tool user; m = 1 if the program ran and printed an answer."""
    scores = {
        "format": format_score(fills),
        "executes": execution_score(ran),
        "sane": 0.0 if fills is None else sanity_score(clues, grid, fills),
    }
    return local_reward(TOOL, scores, available=ran and fills is not None)
