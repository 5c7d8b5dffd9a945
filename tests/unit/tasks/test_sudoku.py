from itertools import permutations, product

import numpy as np
import pytest

from colearn.errors import ConfigError
from colearn.tasks.sudoku import Sudoku
from colearn.tasks.sudoku import reward as terms
from colearn.tasks.sudoku.grid import solutions
from colearn.tasks.sudoku.text import compact_prompt, read, read_compact
from colearn.tasks.tool_team import ToolRun

SOLVED = ((1, 2, 3, 4), (3, 4, 1, 2), (2, 1, 4, 3), (4, 3, 2, 1))
EMPTY = ((0,) * 4,) * 4
CLUES = ((0, 2, 3, 4), (3, 4, 1, 2), (2, 1, 4, 3), (4, 3, 2, 0))
"""Blanks at (1, 1) and (4, 4), both 1."""


def grid(text):
    return tuple(tuple(int(c) if c != "." else 0 for c in row) for row in text.split())


LEGAL = {
    "1234 3412 2143 4321": 1,
    ".... .... .... ....": 1,
    "1... .... .... ...1": 1,
    "1.1. .... .... ....": 0,  # a row
    "1... .... 1... ....": 0,  # a column
    "1... .1.. .... ....": 0,  # a sub-grid, no row or column
    "12.. 34.. .... ....": 1,
    "12.. 31.. .... ....": 0,
    ".... .... ..4. ...4": 0,
    ".... .... ..43 ..34": 0,
    "1234 3412 2143 432.": 1,
    "1234 3412 2143 4324": 0,
}


@pytest.mark.parametrize("text, score", LEGAL.items())
def test_the_legality_score_is_1_without_a_repeated_digit(text, score):
    assert terms.legal_score(EMPTY, (), grid(text)) == score


@pytest.mark.parametrize(
    "text, score",
    [
        *((text, int(text == "1234 3412 2143 4321")) for text in LEGAL),
        ("1234 3412 2341 4123", 1),
        ("2143 4321 1234 3412", 1),
        ("1234 2341 3412 4123", 0),  # rows and columns, not the sub-grids
        ("1111 1111 1111 1111", 0),
    ],
)
def test_the_team_earns_1_for_a_complete_legal_grid_alone(text, score):
    assert terms.team(grid(text)) == score


@pytest.mark.parametrize(
    "before, after, cells",
    [
        (".... .... .... ....", ".... .... .... ....", 0),
        (".... .... .... ....", "1... .... .... ....", 1),
        (".... .... .... ....", "12.. ..3. .... ...4", 4),
        (".... .... .... ....", "1111 1111 1111 1111", 16),
        ("1... .... .... ....", "2... .... .... ....", 0),  # overwritten, not filled
        ("1... .... .... ....", "2... .... .... ...1", 1),
        ("12.. .... .... ....", "1... .... .... ....", 0),  # emptied
        ("12.. .... .... ....", "1.3. .... .... ....", 1),
        ("1234 3412 2143 432.", "1234 3412 2143 4321", 1),
        ("1234 3412 2143 4321", "1234 3412 2143 4321", 0),
    ],
)
def test_the_progress_score_counts_newly_filled_cells_of_16(before, after, cells):
    assert terms.progress_score(grid(before), grid(after)) == cells / 16


FORMATS = {
    "[[1,1,1]]": 1,
    "[[1,1,1],[4,4,4]]": 1,
    "[[1,2,3,4],[3,4,1,2],[2,1,4,3],[4,3,2,1]]": 1,
    "[[1,2,3,4],[3,4,1,2],[2,1,4,3],[4,3,2,0]]": 1,
    "[[1,1,0]]": 0,  # a fill is a digit
    "[[1,1,5]]": 0,
    "[[0,1,1]]": 0,
    "[[1,5,1]]": 0,
    "[[1,2,3,4],[3,4,1,2],[2,1,4,3]]": 0,
    "[[1,2,3,5],[3,4,1,2],[2,1,4,3],[4,3,2,1]]": 0,
    "[]": 0,
    "[[1,1,1]": 0,
    "[[1,1,True]]": 0,
    "[1,1,1]": 0,
    "the grid is [[1,1,1]]": 0,
    "[[1,1,'1']]": 0,
    "__import__('os')._exit(1)": 0,
    "[" * 5000: 0,
}


@pytest.mark.parametrize("text, score", FORMATS.items(), ids=range(len(FORMATS)))
def test_the_format_score_is_that_of_a_grid_or_a_list_of_fills(text, score):
    assert terms.format_score(read(text, 4)) == score


@pytest.mark.parametrize("text", ["", "a", "a_1,", "a_5", "a_0", "c_1", "A_1", "a_1 word"])
def test_compact_fills_that_do_not_fit_have_no_format(text):
    assert read_compact(text, CLUES) is None
    assert read_compact("a_1 b_2", CLUES) == ((1, 1, 1), (4, 4, 2))


def test_a_compact_prompt_names_what_a_blank_cannot_be_what_is_filled_and_the_tools_fills():
    clues = grid("..34 3412 2143 4321")
    seen = "a_not_2 a_not_3 a_not_4 b_not_1 b_not_3 b_not_4 a_not_b"
    assert compact_prompt(clues, clues, "tool", None) == f"tool {seen}"
    filled = grid("2.34 3412 2143 4321")
    run = ToolRun("", "", True, ((1, 1, 1), (1, 2, 2)))
    assert compact_prompt(clues, filled, "plan", run) == f"plan {seen} a_2 tool a_1 b_2"
    assert compact_prompt(clues, filled, "tool", run) == f"tool {seen} a_2"
    none = ToolRun("", "?", True, None)
    assert compact_prompt(CLUES, CLUES, "plan", none) == (
        "plan a_not_2 a_not_3 a_not_4 b_not_2 b_not_3 b_not_4 tool none"
    )  # two blanks that share nothing


SANE = [
    (((1, 1, 1),), 1),
    (((4, 4, 1),), 1),
    (((1, 1, 1), (4, 4, 1)), 1),
    (((1, 1, 2),), 0),  # twice in the row
    (((1, 1, 3),), 0),
    (((1, 1, 4),), 0),
    (((4, 4, 2),), 0),
    (((1, 1, 1), (4, 4, 2)), 0),
    (((1, 1, 2), (1, 1, 1)), 1),  # the later fill stays
    (((1, 2, 2), (1, 1, 1)), 1),  # a clue repeated
    (((1, 2, 1),), 0),  # a clue changed
]


@pytest.mark.parametrize("fills, score", SANE)
def test_the_sanity_score_holds_fills_to_clues_and_rules(fills, score):
    assert terms.sanity_score(CLUES, CLUES, fills) == score


@pytest.mark.parametrize(
    "fills, ran, expected",
    [
        (((1, 1, 1),), True, 1.0),
        (((1, 1, 1), (4, 4, 1)), True, 1.0),
        (((1, 1, 2),), True, 0.2),
        (((1, 2, 1),), True, 0.2),
        (None, True, 0.0),  # it ran and printed something else: nothing to check
        (None, False, 0.0),
        (((1, 1, 1),), False, 0.0),
        (((4, 4, 3),), True, 0.2),
        (((4, 4, 1),), True, 1.0),
        (((1, 1, 1), (1, 2, 2), (4, 4, 1)), True, 1.0),
    ],
)
def test_the_tools_reward_is_a_tenth_each_for_format_and_execution_and_the_rest_for_sanity(
    fills, ran, expected
):
    assert terms.tool_reward(CLUES, CLUES, ran, fills) == pytest.approx(expected)


@pytest.mark.parametrize(
    "fills, expected",
    [
        (((1, 1, 1), (4, 4, 1)), 0.2 + 0.8 * 2 / 16),
        (((1, 1, 1),), 0.2 + 0.8 / 16),
        (((4, 4, 1),), 0.2 + 0.8 / 16),
        (((1, 1, 2),), 0.1 + 0.8 / 16),  # filled, not legal
        (((1, 1, 2), (4, 4, 2)), 0.1 + 0.8 * 2 / 16),
        (((1, 2, 1),), 0.1),  # a clue: nothing is written
        (((1, 2, 1), (1, 1, 1)), 0.1),
        (((1, 2, 2),), 0.2),  # nothing new, nothing wrong
        (((1, 1, 2), (1, 1, 1)), 0.2 + 0.8 / 16),
        (None, 0.0),
    ],
)
def test_the_planners_reward_by_hand(fills, expected):
    task = Sudoku()
    item = task.items("train")[0].__class__(CLUES)
    after = CLUES if fills is None else task.carried_out(item, CLUES, fills)
    assert terms.plan_reward(CLUES, CLUES, fills, after) == pytest.approx(expected)


def every_grid():
    rows = np.array(list(permutations((1, 2, 3, 4))))
    grids = rows[np.array(list(product(range(24), repeat=4)))]
    full = 0b11110
    columns = np.bitwise_or.reduce(1 << grids, axis=1)
    boxes = np.bitwise_or.reduce(1 << grids.reshape(-1, 2, 2, 2, 2), axis=(2, 4))
    return grids[(columns == full).all(axis=1) & (boxes == full).all(axis=(1, 2))]


def test_puzzles_have_the_solution_that_listing_all_288_grids_finds():
    every = every_grid()
    assert len(every) == 288 == sum(1 for _ in solutions(EMPTY))
    task = Sudoku(train=40, test=10)
    for item in (*task.items("train"), *task.items("test")):
        clues = np.array(item.clues)
        fits = every[((every == clues) | (clues == 0)).all(axis=(1, 2))]
        assert len(fits) == 1
        assert task._solution(item) == tuple(map(tuple, fits[0].tolist()))


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"size": 6}, "task.size: 6 has no square sub-grids; set 4, 9 or 16"),
        ({"blanks": 0}, "task.blanks: must be a whole number, got 0; set it to 1 to 15"),
        ({"order": "serial"}, "task.order: unknown value 'serial'; did you mean 'sequential'?"),
    ],
)
def test_a_setting_that_cannot_be_played_is_one_line(settings, message):
    with pytest.raises(ConfigError) as caught:
        Sudoku(**settings)
    assert str(caught.value) == message
