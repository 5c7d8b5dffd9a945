"""Malformed and hostile answers in every task of Stronger-MAS: they earn the format score that they
deserve, and play goes on."""

import numpy as np
import pytest

from colearn.rollout.agents import Program
from colearn.rollout.grow import grow
from colearn.rollout.shapes import Parallel
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
DOES_NOT_RUN = {
    "does not parse": program("print(["),
    "is nested too deeply": program("x = " + "(" * 5000),
    "imports what is not there": program("import no_such_module"),
}
FAILS = {
    "raises after printing": program("print(['U'])", "1 / 0"),
    "exits": program("import os", "os._exit(3)"),
    "raises SystemExit": program("raise SystemExit(2)"),
    "kills itself": program("import os", "os.kill(os.getpid(), 9)"),
    "kills its parent": program("import os", "os.kill(os.getppid(), 9)", "raise ValueError"),
    "loops": program("while True: pass"),
    "sleeps": program("import time", "time.sleep(60)"),
    "eats memory": program("x = 'x' * 10**11"),
    "recurses": program("def f(): f()", "f()"),
    "prints without end": program("while True: print('U' * 1000)"),
    "forks": program("import os", "while True: os.fork()"),
    "opens a socket": program("import socket", "socket.create_connection(('1.1.1.1', 80))"),
}
PRINTS_NO_ANSWER = {
    "prints nothing": program("x = 1"),
    "exits in silence": program("import os", "os._exit(0)"),
    "prints a wrong list": program("print(['N', 'E'])"),
    "prints text around": program("print('moves:', ['U'], 'so 1')"),
    "prints an empty list": program("print([])"),
    "prints a tower of powers": program("print('9**9**9**9')"),
    "prints control characters": program("print('\\x00\\x1b[2J\\udcff'.encode('utf8', 'replace'))"),
}
PROGRAMS = {**NO_BLOCK, **DOES_NOT_RUN, **FAILS, **PRINTS_NO_ANSWER}


def seconds(name):
    """Little for what fails whether it is stopped or not; enough for what ends well."""
    return 0.6 if name in FAILS else 600.0


def ids(answers):
    return {"argvalues": list(answers.items()), "ids": list(answers)}


@pytest.mark.parametrize("name, said", **ids(PROGRAMS))
def test_a_tool_users_program_without_an_answer_earns_nothing_in_a_game(name, said):
    task = PlanPath(train=1, test=1, seconds=seconds(name))
    state = task.reset(task.items("train")[0], RNG)
    outcome = task.step(state, {"tool": said}, RNG)
    assert outcome.local_rewards == {"tool": 0} and outcome.reward == 0
    assert outcome.state.valid == 0 and outcome.state.answers == 1
    assert "Proposed action: none" in task.observe(outcome.state, "plan").text


@pytest.mark.slow
@pytest.mark.parametrize("name, said", **ids(PROGRAMS))
def test_a_tool_users_program_in_math_earns_a_tenth_for_a_block_and_one_for_a_run(name, said):
    task = MathDuo(train=1, test=1, seconds=seconds(name))
    state = task.reset(task.items("train")[0], RNG)
    outcome = task.step(state, {"tool": said, "reasoner": "####"}, RNG)
    deserved = 0.0 if name in NO_BLOCK else 0.2 if name in PRINTS_NO_ANSWER else 0.1
    assert outcome.local_rewards["tool"] == pytest.approx(deserved)
    assert outcome.local_rewards["reasoner"] == 0
    assert not outcome.done and task.observe(outcome.state, "reasoner")


@pytest.mark.slow
@pytest.mark.parametrize("name, said", **ids(PROGRAMS))
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
@pytest.mark.parametrize("name", ["no block", "two blocks", "prints a wrong list", "loops"])
def test_the_other_games_read_programs_alike(game, name):
    task = game(train=1, test=1, seconds=seconds(name))
    state = task.reset(task.items("train")[0], RNG)
    outcome = task.step(state, {"tool": PROGRAMS[name]}, RNG)
    assert outcome.local_rewards == {"tool": 0} and outcome.state.valid == 0


DECISIONS = [
    "",
    "####",
    "[[1,1,1]]",
    "#### U",
    "so #### [U]",
    "#### []",
    "##### [U]",
    "#### [U]\nor [D]",
    "#### [X]",
    "#### [[0,1,1]]",
    "#### [[1,1,9]]",
    "#### [[1,1]]",
    "#### [[1,1,1.5]]",
    "#### [[true,1,1]]",
    "#### " + "[" * 5000,
    "#### " + "[U," * 300 + "U]",
    "#### __import__('os')._exit(1)",
    "#### 9**9**9**9",
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
        ("", 0),
        ("7", 0),
        ("####", 0),
        ("so #### 7", 0),
        ("#### 7\nor 8", 0),
        ("#### seven", 0.2),
        ("#### 9**9**9**9", 0.2),
        ("#### 99999!", 0.2),
        ("#### nan", 0.2),
        ("#### " + "1" * 3000, 0.2),
        ("#### 7\n#### seven", 0.2),  # the last one counts
    ],
    ids=range(11),
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
        "**Test Input:** 1",
        "**Test Output:** 1",
        "**Test Output:** 1\n**Test Input:** 1",
        "**Test Input:**\n1\n**Test Output:**",
        "**Test Input:** 1\n**Test Output:** 1\n" * 2,
        "Test Input: 1\nTest Output: 1",
    ],
    ids=range(8),
)
def test_a_testers_answer_without_its_format_earns_nothing(said):
    task = CoderTester(golden=1)
    state = task.reset(task.items("train")[0], RNG)
    outcome = task.step(state, {"coder": "", "tester": said}, RNG)
    assert outcome.local_rewards == {"coder": 0, "tester": 0} and outcome.state.valid == 0
    assert "No valid test case was given." in task.observe(outcome.state, "tester").text


class Anything:
    """Says one of the hostile answers."""

    def __init__(self, answers):
        self.answers = answers

    def act(self, view):
        """Any of them."""
        return self.answers[int(view.rng.integers(len(self.answers)))]


QUICK = [said for name, said in PROGRAMS.items() if name not in ("sleeps", "forks", "eats memory")]


@pytest.mark.parametrize("task", [*GAMES, MathDuo, CoderTester])
def test_a_rollout_of_hostile_answers_comes_to_its_end(task):
    more = {"golden": 1} if task is CoderTester else {"train": 2, "test": 1}
    played = task(turns=1, seconds=0.3, **more)
    players = {agent: Program(Anything([*QUICK, *DECISIONS])) for agent in played.agents}
    trees, _ = grow(played, played.items("train")[:2], players, Parallel(3), seed=7)
    assert len(trees) == 2
    assert all(len(tree.nodes) == 1 + 3 * played.horizon for tree in trees)
