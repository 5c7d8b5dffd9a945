"""The terms of Sokoban's rewards (Stronger-MAS, B.5). Each is a function of the moves."""

from __future__ import annotations

from ..local_reward import local_reward, weights
from ..moves import Moves
from .world import Board, Room, play, potential

PLAN = weights(format=0.10, legal=0.10, deadlock_free=0.80)
TOOL = weights(format=0.10, executes=0.10, potential=0.80)


def team(room: Room, after: Board) -> float:
    """r_team: the share of boxes on goals, so 1 if all are."""
    return len(after.boxes & room.goals) / len(after.boxes)


def format_score(moves: Moves | None) -> float:
    """s_fmt: 1 if a list of U, D, L, R was read."""
    return float(moves is not None)


def legal_score(room: Room, board: Board, moves: Moves) -> float:
    """s_leg: 1 if no move runs into a wall and every pushed box can move."""
    return float(play(room, board, moves).legal)


def deadlock_score(room: Room, board: Board, moves: Moves) -> float:
    """s_dlk: 1 if no move pushes a box into a corner that is not a goal."""
    return float(not play(room, board, moves).deadlocked)


def execution_score(room: Room, board: Board, moves: Moves) -> float:
    """s_exec: 1 if there is no illegal push and no collision with a wall or a box."""
    return float(play(room, board, moves).legal)


def potential_score(room: Room, board: Board, moves: Moves) -> float:
    """s_pot: 1 if psi does not decrease, where -psi is the sum of the boxes' distances to their
    nearest goals."""
    end = play(room, board, moves).end
    return float(potential(room, end) >= potential(room, board))


def plan_reward(room: Room, board: Board, moves: Moves | None) -> float:
    """r_loc of the planner; m = 1 if the answer has moves."""
    if moves is None:
        return 0.0
    scores = {
        "format": format_score(moves),
        "legal": legal_score(room, board, moves),
        "deadlock_free": deadlock_score(room, board, moves),
    }
    return local_reward(PLAN, scores, available=True)


def tool_reward(room: Room, board: Board, moves: Moves | None) -> float:
    """r_loc of the tool user; m = 1 if its program ran and printed moves to simulate."""
    if moves is None:
        return 0.0
    scores = {
        "format": format_score(moves),
        "executes": execution_score(room, board, moves),
        "potential": potential_score(room, board, moves),
    }
    return local_reward(TOOL, scores, available=True)
