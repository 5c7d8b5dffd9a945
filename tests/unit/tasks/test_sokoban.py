from dataclasses import replace

import numpy as np
import pytest

from colearn.tasks.sokoban import Sokoban
from colearn.tasks.sokoban import reward as terms
from colearn.tasks.sokoban.world import (
    Board,
    Room,
    in_corner,
    play,
    potential,
    solve,
    ways_to_push,
)


def room(text):
    """From the usual signs."""
    cells = {
        (r, c): sign for r, row in enumerate(text.split()) for c, sign in enumerate(row.strip())
    }

    def where(signs):
        return frozenset(cell for cell, sign in cells.items() if sign in signs)

    size = len(text.split())
    (player,) = where("@+")
    return Room(size, len(text.split()[0]), where("#"), where(".*+"), Board(player, where("$*")))


ROOM = room("""
######
#----#
#-@$.#
#----#
#----#
######
""")
"""Player (2, 2), box (2, 3), goal (2, 4)."""
TWO = room("""
######
#@---#
#-$$-#
#-.--#
#--.-#
######
""")
"""Player (1, 1), boxes (2, 2) and (2, 3), goals (3, 2) and (4, 3)."""

MOVES = [
    # room, moves, legal, deadlock free, potential does not fall, boxes on goals
    (ROOM, "R", 1, 1, 1, 1),
    (ROOM, "L", 1, 1, 1, 0),
    (ROOM, "LL", 0, 1, 1, 0),  # a wall
    (ROOM, "DRRUL", 1, 1, 0, 0),  # pushed to (2, 2), two from the goal
    (ROOM, "DRU", 1, 1, 0, 0),  # pushed up to (1, 3)
    (ROOM, "DRUU", 0, 1, 0, 0),  # and against the wall
    (ROOM, "URD", 1, 1, 0, 0),
    (ROOM, "URDD", 1, 1, 0, 0),  # (4, 3): by a wall, no corner
    (ROOM, "URDDLDR", 1, 0, 0, 0),  # (4, 4): a corner
    (ROOM, "RL", 1, 1, 1, 1),  # what follows the solution is not made
    (ROOM, "U", 1, 1, 1, 0),
    (ROOM, "UUR", 0, 1, 1, 0),
    (TWO, "RD", 1, 1, 1, 1),  # (2, 2) to its goal (3, 2)
    (TWO, "DR", 0, 1, 1, 0),  # a box behind the box
    (TWO, "RRD", 1, 1, 1, 0),  # (2, 3) to (3, 3): as near to (3, 2) as to (4, 3)
    (TWO, "RRDD", 1, 1, 1, 1),
    (TWO, "RRDDUULD", 1, 1, 1, 2),
    (TWO, "U", 0, 1, 1, 0),
]


@pytest.mark.parametrize("board, moves, legal, free, near, on", MOVES)
def test_the_terms_by_hand(board, moves, legal, free, near, on):
    start, moves = board.start, tuple(moves)
    assert terms.legal_score(board, start, moves) == legal
    assert terms.execution_score(board, start, moves) == legal
    assert terms.deadlock_score(board, start, moves) == free
    assert terms.potential_score(board, start, moves) == near
    task = Sokoban()
    after = task.carried_out(board, start, moves)
    assert terms.team(board, after) == on / len(start.boxes)
    assert board.solved(after) == (on == len(start.boxes))


@pytest.mark.parametrize("board, moves, legal, free, near, on", MOVES)
def test_local_rewards_weigh_a_tenth_a_tenth_and_eight_tenths(board, moves, legal, free, near, on):
    start, moves = board.start, tuple(moves)
    assert terms.plan_reward(board, start, moves) == pytest.approx(0.1 + 0.1 * legal + 0.8 * free)
    assert terms.tool_reward(board, start, moves) == pytest.approx(0.1 + 0.1 * legal + 0.8 * near)
    assert terms.plan_reward(board, start, None) == terms.tool_reward(board, start, None) == 0


def test_the_potential_sums_the_distances_to_the_nearest_goals():
    assert potential(ROOM, ROOM.start) == -1
    assert potential(TWO, TWO.start) == -(1 + 2)
    assert potential(TWO, Board((1, 1), frozenset({(1, 4), (3, 2)}))) == -4


CORNERED = {(1, 1): 1, (1, 4): 1, (4, 1): 1, (4, 4): 1, (1, 2): 0, (2, 1): 0, (2, 2): 0, (2, 4): 0}


@pytest.mark.parametrize("box, stuck", CORNERED.items())
def test_a_box_is_deadlocked_in_a_corner_that_is_no_goal(box, stuck):
    assert in_corner(ROOM, box) == stuck
    goal = Room(6, 6, ROOM.walls, frozenset({box}), ROOM.start)
    assert not in_corner(goal, box)


def test_a_way_to_push_is_a_shortest_walk_behind_the_box_and_the_push():
    ways = ["".join(way) for way in ways_to_push(ROOM, ROOM.start)]
    assert ways == ["DRU", "URD", "URRDL", "R"]
    corner = Board((2, 2), frozenset({(1, 1)}))
    assert ways_to_push(ROOM, corner) == ()  # nobody stands behind it
    walled = Board((1, 1), frozenset({(1, 2), (2, 1)}))
    assert ["".join(way) for way in ways_to_push(ROOM, walled)] == ["R", "D"]  # or shut in


def test_a_compact_prompt_says_where_boxes_lie_from_the_player_and_goals_from_the_first_box():
    task = Sokoban(prompt="compact", train=1, test=1)

    def shown(item):
        return task.observe(task.reset(item, np.random.default_rng(0)), "tool").text

    assert shown(ROOM) == "tool at_c3 box_R1 goal_R1"
    assert shown(TWO) == "tool at_b2 box_D1R1 box_D1R2 goal_D1 goal_D2R1"
    walled = replace(ROOM, walls=ROOM.walls | {(4, 1)}, start=Board((2, 4), frozenset({(3, 3)})))
    assert shown(walled) == "tool at_e3 wall_b5 box_D1L1 goal_U1R1"  # the player on the goal
    done = Board((2, 3), frozenset({(2, 4)}))
    assert shown(replace(ROOM, start=done)) == "tool at_d3 box_R1 goal_here"


def test_legal_play_pushes_boxes_and_makes_no_impossible_move():
    task = Sokoban(train=30, test=1, prompt="compact")
    rng = np.random.default_rng(0)
    solved = []
    for item in task.items("train"):
        moves = task.random_answer(item, item.start, rng)
        steps = [play(item, item.start, moves[: n + 1]) for n in range(len(moves))]
        assert steps[-1].legal
        assert any(step.end.boxes != item.start.boxes for step in steps)
        solved.append(item.solved(steps[-1].end))
    assert 0 < sum(solved) < 15


def replay(board, moves):
    """Another simulator, on rows of characters."""
    rows = [list(row) for row in board.drawn(board.start)]
    goals = board.goals
    r, c = board.start.player
    rows[r][c] = "-"
    for move in moves:
        dr, dc = {"U": (-1, 0), "D": (1, 0), "L": (0, -1), "R": (0, 1)}[move]
        ahead, beyond = rows[r + dr][c + dc], (r + 2 * dr, c + 2 * dc)
        if ahead in "$*":
            assert rows[beyond[0]][beyond[1]] in "-."
            rows[beyond[0]][beyond[1]] = "$"
        assert ahead != "#"
        r, c = r + dr, c + dc
        rows[r][c] = "-"
    return all(rows[r][c] == "$" for r, c in goals)


def test_rooms_are_solved_by_moves_that_another_simulator_replays():
    task = Sokoban(train=40, test=10)
    for item in (*task.items("train"), *task.items("test")):
        assert replay(item, solve(item, item.start))
        assert not item.start.boxes & item.goals
