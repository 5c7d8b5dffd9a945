"""The language of steps: what programs compute, and what coder and tester earn with it."""

from __future__ import annotations

import numpy as np
import pytest

from colearn.contract.testing import check_task
from colearn.errors import ConfigError
from colearn.tasks.coder_tester import CoderTester
from colearn.tasks.step_programs import are_steps, run_steps, step_problems

RNG = np.random.default_rng(0)


def problem(task, question: str):
    items = [*task.items("train"), *task.items("test")]
    return next(item for item in items if str(item) == question)


@pytest.mark.parametrize(
    ("program", "three"),
    [("times_2", 6), ("plus_1 times_3", 12), ("times_3 plus_1", 10), ("negate minus_1", -4)],
)
def test_steps_change_a_number_one_after_the_other(program: str, three: int) -> None:
    assert run_steps(program, 3) == three


@pytest.mark.parametrize("text", ["", "times_4", "times_2 then plus_1", "plus_1 " * 9])
def test_other_texts_are_no_program(text: str) -> None:
    assert not are_steps(text)


def test_every_step_is_trained_alone_and_held_out_questions_have_two() -> None:
    problems = step_problems()
    trained, tested = ({str(one) for one in problems[split]} for split in ("train", "test"))
    assert not trained & tested
    assert {len(question.split(" then ")) for question in tested} == {2}
    steps = {step for question in tested for step in question.split(" then ")}
    assert steps <= trained


def test_the_reference_of_a_question_is_its_steps_in_order() -> None:
    (item,) = {one for one in step_problems()["train"] if one.question == "times_2"}
    assert item.program == "times_2"
    assert item.tests == ((1, 2), (2, 4), (3, 6), (5, 10), (8, 16))


def test_coder_and_tester_are_paid_for_steps_as_for_python() -> None:
    task = CoderTester(data="steps", turns=2)
    state = task.reset(problem(task, "times_2"), RNG)
    assert task.observe(state, "coder").text == "coder times_2"
    # 2 x = 3 x nowhere; a tester is right with 3 -> 6
    wrong = task.step(state, {"coder": "times_3", "tester": "3 6"}, RNG)
    assert (wrong.reward, wrong.done) == (0.0, False)
    assert wrong.local_rewards == pytest.approx({"coder": 0.2, "tester": 1.0})
    told = "program times_3 test 3 6 printed 9"
    assert task.observe(wrong.state, "tester").text == f"tester times_2 {told}"
    right = task.step(wrong.state, {"coder": "times_2", "tester": "-1 2"}, RNG)
    assert (right.reward, right.done) == (1.0, True)
    assert right.local_rewards == pytest.approx({"coder": 1.0, "tester": 0.2})


def test_a_program_that_is_none_is_a_syntax_error_and_ends_no_run() -> None:
    task = CoderTester(data="steps")
    state = task.reset(problem(task, "times_2"), RNG)
    outcome = task.step(state, {"coder": "print", "tester": "three six"}, RNG)
    assert outcome.local_rewards == {"coder": 0.0, "tester": 0.0}


def test_steps_have_a_test_split_of_their_own() -> None:
    with pytest.raises(ConfigError, match=r"task\.test_data"):
        CoderTester(data="steps", test_data="mbpp")


def test_a_guess_is_right_a_quarter_of_the_time_or_by_chance() -> None:
    task = CoderTester(data="steps")
    state = task.reset(problem(task, "times_2 then plus_1"), RNG)
    rng = np.random.default_rng(0)
    guesses = [task.legal_action(state, "coder", rng) for _ in range(2000)]
    assert all(map(are_steps, guesses))
    # 1/4 + 3/4 x 1/2 x 1/36
    assert guesses.count("times_2 plus_1") / 2000 == pytest.approx(0.26, abs=0.03)


def test_steps_keep_the_contract() -> None:
    check_task(CoderTester(data="steps"))
