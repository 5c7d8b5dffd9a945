import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from colearn.errors import ConfigError
from colearn.tasks.moves import STEPS, moved, read, read_compact
from colearn.tasks.plan_path import PlanPath
from colearn.tasks.plan_path import reward as terms
from colearn.tasks.plan_path.world import Map, shortest_path, walk

#   0 1 2 3
# 0 S . # G
# 1 . . # .
# 2 . . . .
WORLD = Map(3, 4, frozenset({(0, 2), (1, 2)}), (0, 0), (0, 3))
"""The way from S to G is D D R R R U U: 7 moves, Manhattan distance 3."""
OPEN = Map(3, 3, frozenset(), (0, 0), (2, 2))


@pytest.mark.parametrize(
    "world, before, after, reward",
    [
        (WORLD, (0, 0), (0, 3), 1.0),
        (WORLD, (2, 3), (0, 3), 1.0),
        (WORLD, (0, 0), (0, 1), 1 / 3),
        (WORLD, (0, 0), (1, 1), 0.0),  # one column nearer, one row further
        (WORLD, (0, 0), (2, 0), 0.0),  # further: not below 0
        (WORLD, (0, 0), (0, 0), 0.0),
        (WORLD, (2, 0), (2, 3), 1.0),  # 5 to 2, over 3
        (WORLD, (2, 3), (1, 3), 1 / 3),
        (OPEN, (0, 0), (1, 1), 0.5),
        (OPEN, (0, 0), (0, 1), 0.25),
        (OPEN, (1, 1), (0, 1), 0.0),
        (Map(1, 2, frozenset(), (0, 0), (0, 1)), (0, 0), (0, 1), 1.0),
    ],
)
def test_the_team_earns_its_gain_in_distance_and_1_at_the_goal(world, before, after, reward):
    assert terms.team(world, before, after) == pytest.approx(reward)


FORMATS = {
    '["U","R","D","L"]': 1,
    "[U,R,D,L]": 1,
    "['U', 'R']": 1,
    ' ["U"]\n': 1,
    "[]": 0,
    "": 0,
    "U,R": 0,
    '["u"]': 0,
    '["U","X"]': 0,
    "[\"U',R]": 0,
    '["UR"]': 0,
    '["U",]': 0,
    '[["U"]]': 0,
    'moves: ["U"]': 0,
    '["U"] and ["D"]': 0,
    "[" + ",".join("U" * 201) + "]": 0,
}


@pytest.mark.parametrize("text, score", FORMATS.items(), ids=range(len(FORMATS)))
def test_the_format_score_is_that_of_a_list_of_moves(text, score):
    assert terms.format_score(read(text)) == score


def test_compact_moves_stand_between_spaces():
    assert read_compact(" U  R ") == ("U", "R")
    assert [read_compact(text) for text in ("", "U,R", "up", "U " * 201)] == [None] * 4


MOVES = [
    # moves, legal, on a shortest path, executes, the distance does not grow
    ("DDRRRUU", 1, 7, 1, 1),
    ("R", 1, 1, 1, 1),  # D D ... and R D ... are as short
    ("RDDRRUU", 1, 7, 1, 1),
    ("D", 1, 1, 1, 0),  # the way leads down first, away from the goal by Manhattan
    ("U", 0, 0, 0, 1),  # out of the map; nothing moved
    ("RR", 0, 1, 0, 1),  # a wall
    ("RL", 1, 1, 0, 1),  # back where it was: the simulation did not advance
    ("DDRRRUUU", 1, 7, 1, 1),  # what follows the goal is not made
    ("DDLR", 0, 2, 0, 0),
    ("DDRR", 1, 4, 1, 1),  # 3 to 3
    ("DUDDRRRUU", 1, 8, 1, 1),
    ("RRDDRRUU", 0, 1, 0, 1),
]


@pytest.mark.parametrize("moves, legal, shortest, executes, shape", MOVES)
def test_the_local_terms_by_hand(moves, legal, shortest, executes, shape):
    moves = tuple(moves)
    assert terms.legal_score(WORLD, (0, 0), moves) == legal
    assert terms.shortest_score(WORLD, (0, 0), moves) == pytest.approx(shortest / len(moves))
    assert terms.execution_score(WORLD, (0, 0), moves) == executes
    assert terms.shape_score(WORLD, (0, 0), moves) == shape


@pytest.mark.parametrize("moves, legal, shortest, executes, shape", MOVES)
def test_local_rewards_weigh_a_tenth_a_tenth_and_eight_tenths(
    moves, legal, shortest, executes, shape
):
    moves = tuple(moves)
    plan = 0.1 + 0.1 * legal + 0.8 * shortest / len(moves)
    assert terms.plan_reward(WORLD, (0, 0), moves) == pytest.approx(plan)
    tool = 0.1 + 0.1 * executes + 0.8 * shape
    assert terms.tool_reward(WORLD, (0, 0), moves) == pytest.approx(tool)
    assert terms.plan_reward(WORLD, (0, 0), None) == terms.tool_reward(WORLD, (0, 0), None) == 0


def test_a_single_move_scores_as_the_papers_SPNext():
    scores = {move: terms.shortest_score(WORLD, (2, 3), (move,)) for move in STEPS}
    assert scores == {"U": 1, "D": 0, "L": 0, "R": 0}


def test_maps_have_the_distances_that_dijkstra_finds():
    task = PlanPath(train=40, test=10)
    for item in (*task.items("train"), *task.items("test")):
        number = {cell: k for k, cell in enumerate(sorted(item.free))}
        edges = [
            (number[cell], number[moved(cell, move)])
            for cell in number
            for move in STEPS
            if moved(cell, move) in number
        ]
        graph = coo_array(
            (np.ones(len(edges)), tuple(zip(*edges, strict=True))), (len(number),) * 2
        )
        far = dijkstra(graph.tocsr(), indices=number[item.goal])
        expected = {cell: int(far[k]) for cell, k in number.items() if np.isfinite(far[k])}
        assert item.oracle == expected
        way = shortest_path(item, item.start)
        assert len(way) == expected[item.start]
        assert walk(item, item.start, way).end == item.goal
        assert item.start != item.goal and len(item.walls) < 60


def test_too_few_different_maps_are_one_line():
    with pytest.raises(ConfigError) as caught:
        PlanPath(size=2, walls=0.0, train=20, test=1).items("train")
    assert str(caught.value).startswith("task.train: 20 different instances asked for, ")
    assert str(caught.value).endswith("; set task.size or task.walls higher or ask for fewer")
