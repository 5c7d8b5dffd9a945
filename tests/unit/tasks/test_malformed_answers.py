"""Malformed and hostile answers in every task of Stronger-MAS: they earn the format score that they
deserve, and play goes on."""

import numpy as np
import pytest

from colearn.tasks.coder_tester import CoderTester
from colearn.tasks.math_duo import MathDuo
from colearn.tasks.plan_path import PlanPath
from colearn.tasks.sokoban import Sokoban
from colearn.tasks.sudoku import Sudoku

RNG = np.random.default_rng(0)
GAMES = [Sudoku, PlanPath, Sokoban]


def program(*lines):
    return "I think\n```python\n" + "\n".join(lines) + "\n```\nas asked"


NO_BLOCK = {
    "nothing": "",
    "no block": "print(1)",
    "an open block": "```python\nprint(1)",
    "two blocks": program("print(1)") + "\n" + program("print(1)"),
    "a block in a block": program("```python", "print(1)", "```"),
    "another language": "```bash\necho 1\n```",
    "an empty block": "```python\n\n```",
    "a block within a line": "so ```python print(1)```",
}
DOES_NOT_RUN = {"does not parse": program("print([")}
FAILS = {
    "raises after printing": program("print(['U'])", "1 / 0"),
    "loops": program("while True: pass"),
}
PRINTS_NO_ANSWER = {
    "prints nothing": program("x = 1"),
    "prints a wrong list": program("print(['N', 'E'])"),
    "prints text around": program("print('moves:', ['U'], 'so 1')"),
    "prints a tower of powers": program("print('9**9**9**9')"),
}
PROGRAMS = {**NO_BLOCK, **DOES_NOT_RUN, **FAILS, **PRINTS_NO_ANSWER}
"""Hostile programs are `tests/integration/test_sandbox_hostile.py`'s."""


def seconds(name):
    """Little for what fails whether it is stopped or not; enough for what ends well."""
    return 0.6 if name in FAILS else 600.0


SAID = pytest.mark.parametrize("name, said", PROGRAMS.items(), ids=PROGRAMS)


@SAID
def test_a_tool_users_program_without_an_answer_earns_nothing_in_a_game(name, said):
    task = PlanPath(train=1, test=1, seconds=seconds(name))
    state = task.reset(task.items("train")[0], RNG)
    outcome = task.step(state, {"tool": said}, RNG)
    assert outcome.local_rewards == {"tool": 0} and outcome.reward == 0
    assert outcome.state.valid == 0 and outcome.state.answers == 1
    assert "Proposed action: none" in task.observe(outcome.state, "plan").text


@SAID
def test_a_tool_users_program_in_math_earns_a_tenth_for_a_block_and_one_for_a_run(name, said):
    task = MathDuo(train=1, test=1, seconds=seconds(name))
    state = task.reset(task.items("train")[0], RNG)
    outcome = task.step(state, {"tool": said, "reasoner": "####"}, RNG)
    deserved = 0.0 if name in NO_BLOCK else 0.2 if name in PRINTS_NO_ANSWER else 0.1
    assert outcome.local_rewards["tool"] == pytest.approx(deserved)
    assert outcome.local_rewards["reasoner"] == 0
    assert not outcome.done and task.observe(outcome.state, "reasoner")


@SAID
def test_a_coders_program_earns_a_tenth_if_it_builds_and_one_if_it_runs(name, said):
    task = CoderTester(golden=1, seconds=seconds(name))
    state = task.reset(task.items("train")[0], RNG)
    outcome = task.step(state, {"coder": said, "tester": ""}, RNG)
    builds, runs = name in {**FAILS, **PRINTS_NO_ANSWER}, name in PRINTS_NO_ANSWER
    assert outcome.local_rewards["coder"] == pytest.approx(0.1 * builds + 0.1 * runs)
    assert outcome.reward == 0 and not outcome.done
    assert outcome.state.valid == (name not in NO_BLOCK)
    assert task.observe(outcome.state, "coder")


@pytest.mark.parametrize("game", [Sudoku, Sokoban])
@pytest.mark.parametrize("name", ["two blocks", "prints a wrong list"])
def test_the_other_games_read_programs_alike(game, name):
    task = game(train=1, test=1)
    state = task.reset(task.items("train")[0], RNG)
    outcome = task.step(state, {"tool": PROGRAMS[name]}, RNG)
    assert outcome.local_rewards == {"tool": 0} and outcome.state.valid == 0


DECISIONS = [
    "",
    "####",
    "#### U",
    "so #### [U]",
    "#### []",
    "#### [U]\nor [D]",
    "#### [X]",
    "#### [[0,1,1]]",
    "#### [[1,1,9]]",
    "#### [[1,1,1.5]]",
    "#### " + "[" * 5000,
    "#### __import__('os')._exit(1)",
]


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("said", DECISIONS, ids=range(len(DECISIONS)))
def test_a_planners_answer_without_its_format_earns_nothing_and_changes_nothing(game, said):
    task = game(train=1, test=1, variant="single")
    state = task.reset(task.items("train")[0], RNG)
    outcome = task.step(state, {"plan": said}, RNG)
    assert outcome.local_rewards == {"plan": 0} and outcome.reward == 0
    assert outcome.state.world == state.world and outcome.state.turn == 1
    assert not outcome.done and task.observe(outcome.state, "plan")


@pytest.mark.parametrize(
    "said, deserved",
    [
        ("7", 0),
        ("so #### 7", 0),
        ("#### 7\nor 8", 0),
        ("#### seven", 0.2),
        ("#### 9**9**9**9", 0.2),
        ("#### 99999!", 0.2),
        ("#### nan", 0.2),
        ("#### 7\n#### seven", 0.2),  # the last one counts
    ],
    ids=range(8),
)
def test_a_reasoners_answer_that_is_no_number_earns_its_form_at_most(said, deserved):
    task = MathDuo(train=1, test=1)
    state = task.reset(task.items("train")[0], RNG)
    outcome = task.step(state, {"reasoner": said, "tool": ""}, RNG)
    assert outcome.local_rewards == {"reasoner": pytest.approx(deserved), "tool": 0}
    assert not outcome.done


@pytest.mark.parametrize(
    "said",
    [
        "",
        "1 2 3",
        "**Test Output:** 1\n**Test Input:** 1",
        "**Test Input:** 1\n**Test Output:** 1\n" * 2,
        "Test Input: 1\nTest Output: 1",
    ],
    ids=range(5),
)
def test_a_testers_answer_without_its_format_earns_nothing(said):
    task = CoderTester(golden=1)
    state = task.reset(task.items("train")[0], RNG)
    outcome = task.step(state, {"coder": "", "tester": said}, RNG)
    assert outcome.local_rewards == {"coder": 0, "tester": 0} and outcome.state.valid == 0
    assert "No valid test case was given." in task.observe(outcome.state, "tester").text
