"""The terms of Plan-Path's rewards (Stronger-MAS, B.4). Each is a function of the moves."""

from __future__ import annotations

from ..local_reward import local_reward, weights
from ..moves import Cell, Moves, distance
from .world import Map, walk

PLAN = weights(format=0.10, legal=0.10, shortest=0.80)
TOOL = weights(format=0.10, executes=0.10, shape=0.80)


def team(world: Map, before: Cell, after: Cell) -> float:
    """r_team: 1 at the goal, else the gain in Manhattan distance divided by the distance at the
    start."""
    if after == world.goal:
        return 1.0
    first = max(1, distance(world.start, world.goal))
    gain = distance(before, world.goal) - distance(after, world.goal)
    return max(0.0, gain / first)


def format_score(moves: Moves | None) -> float:
    """s_fmt: 1 if a list of U, D, L, R was read."""
    return float(moves is not None)


def legal_score(world: Map, at: Cell, moves: Moves) -> float:
    """s_leg: 1 if no move leaves the map or runs into a wall."""
    return float(walk(world, at, moves).legal)


def shortest_score(world: Map, at: Cell, moves: Moves) -> float:
    """s_sp: the share of moves that are on a shortest path from the cell where the move starts; for
    a single move, this is the paper's SPNext. A move that is not executed does not count as on a
    shortest path."""
    return walk(world, at, moves).shortest / len(moves)


def execution_score(world: Map, at: Cell, moves: Moves) -> float:
    """s_exec: 1 if no move is invalid and the simulation advances."""
    path = walk(world, at, moves)
    return float(path.legal and path.end != at)


def shape_score(world: Map, at: Cell, moves: Moves) -> float:
    """s_shape: 1 if phi = -d does not decrease, where d is the Manhattan distance to the goal."""
    end = walk(world, at, moves).end
    return float(-distance(end, world.goal) >= -distance(at, world.goal))


def plan_reward(world: Map, at: Cell, moves: Moves | None) -> float:
    """r_loc of the planner; m = 1, since map and oracle are always known."""
    scores = {
        "format": format_score(moves),
        "legal": 0.0 if moves is None else legal_score(world, at, moves),
        "shortest": 0.0 if moves is None else shortest_score(world, at, moves),
    }
    return local_reward(PLAN, scores, available=True)


def tool_reward(world: Map, at: Cell, moves: Moves | None) -> float:
    """r_loc of the tool user; m = 1 if its program ran and printed moves to simulate."""
    if moves is None:
        return 0.0
    scores = {
        "format": format_score(moves),
        "executes": execution_score(world, at, moves),
        "shape": shape_score(world, at, moves),
    }
    return local_reward(TOOL, scores, available=True)
