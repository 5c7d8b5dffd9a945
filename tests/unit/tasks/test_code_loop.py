"""Workflow D: who is paid what over three rounds, on scripted scores, and one real verification."""

from __future__ import annotations

import re

import numpy as np
import pytest

from colearn.contract import joint_observations
from colearn.contract.testing import check_task
from colearn.contract.types import Outcome
from colearn.programs.workflow import Tool
from colearn.tasks.code_loop import ReflectiveVerification
from colearn.tasks.code_loop.languages import Report

RNG = np.random.default_rng(0)


async def verify(program: str, entry_point: str, tests: str, prompt: str) -> Report:
    """Finds the score that the program names."""
    returned = re.search(r"return ([\d.]+)", program)
    return Report(float(returned[1]) if returned else 0.0, "as written")


def scripted() -> ReflectiveVerification:
    task = ReflectiveVerification()
    task.tools = (Tool(verify),)
    return task


def program(task, score: float) -> str:
    return f"def {task.items('train')[0].entry_point}():\n    return {score}"


def played(task, *turns) -> list[Outcome]:
    state, outcomes = task.reset(task.items("train")[0], RNG), []
    for role, text in turns:
        assert set(joint_observations(task, state)) == {role}
        outcomes.append(task.step(state, {role: text}, RNG))
        state = outcomes[-1].state
    return outcomes


def paid(task, *turns) -> dict[tuple[int, str], float]:
    """By (turn, role), what the action was paid in all."""
    total: dict[tuple[int, str], float] = {}
    for turn, outcome in enumerate(played(task, *turns)):
        for role, reward in outcome.local_rewards.items():
            total[turn, role] = total.get((turn, role), 0.0) + reward
        for action, reward in outcome.earned.items():
            total[action] = total.get(action, 0.0) + reward
    return total


def test_rewards_are_the_paper_s_three_equations():
    """s = 0.2, 0.6, 0.5: r(P0) = r(C0) = s0; r(R0) = r(P1) = r(C1) = s1 - s0; then s2 - s1."""
    task = scripted()
    rewards = paid(
        task,
        ("planner", "p0"),
        ("coder", program(task, 0.2)),
        ("reflector", "r0"),
        ("planner", "p1"),
        ("coder", program(task, 0.6)),
        ("reflector", "r1"),
        ("planner", "p2"),
        ("coder", program(task, 0.5)),
    )
    assert rewards == pytest.approx(
        {
            **{(0, "planner"): 0.2, (1, "coder"): 0.2},
            **{(2, "reflector"): 0.4, (3, "planner"): 0.4, (4, "coder"): 0.4},
            **{(5, "reflector"): -0.1, (6, "planner"): -0.1, (7, "coder"): -0.1},
        }
    )


def test_the_team_is_paid_the_last_score_once():
    task = scripted()
    rounds = [("planner", ""), ("coder", program(task, 0.25)), ("reflector", "")]
    outcomes = played(task, *rounds, ("planner", ""), ("coder", program(task, 1.0)))
    assert [outcome.reward for outcome in outcomes] == [0.0, 0.0, 0.0, 0.0, 1.0]
    assert outcomes[-1].done
    measured = task.metrics(outcomes[-1].state)
    assert measured == {"score": 1.0, "passed": 1.0, "rounds": 2.0}


def test_a_program_that_passes_ends_the_episode_at_once():
    task = scripted()
    *_, last = played(task, ("planner", ""), ("coder", program(task, 1.0)))
    assert last.done and last.local_rewards == {"coder": 1.0}
    assert last.earned == {(0, "planner"): 1.0}


def test_a_coder_without_the_function_pays_the_format_penalty_on_top():
    rewards = paid(scripted(), ("planner", ""), ("coder", "I would rather not."))
    assert rewards == {(0, "planner"): 0.0, (1, "coder"): -1.0}


def test_later_rounds_are_told_program_score_and_reflection():
    task = scripted()
    state = played(task, ("planner", ""), ("coder", program(task, 0.5)), ("reflector", "mend it"))[
        -1
    ].state
    text = task.observe(state, "planner").text
    assert "return 0.5" in text and "Tests passed: 50%" in text and "mend it" in text


def test_the_real_verifier_counts_the_tests_that_pass():
    task = ReflectiveVerification()
    item = task.items("train")[0]
    half = f"```python\ndef {item.entry_point}(numbers):\n    return 0\n```"
    first, last = played(task, ("planner", ""), ("coder", half))
    assert last.local_rewards == {"coder": pytest.approx(2 / 5)} and not first.done
    assert "Tests passed: 40%" in task.observe(last.state, "reflector").text


def test_it_keeps_the_contract():
    task = scripted()
    check_task(task, seeds=(0,), episodes=1, actions=task.legal_action)


def of_steps(question: str):
    task = ReflectiveVerification(data="steps")
    items = [*task.items("train"), *task.items("test")]
    return task, next(item for item in items if str(item) == question)


def test_of_steps_the_margin_of_the_second_program_is_paid_to_those_who_made_it():
    """x + 1 and 2 x agree at 1 alone, one test of five: s0 = 0.2, s1 = 1."""
    task, item = of_steps("times_2")
    state = task.reset(item, RNG)
    seen, rewards, earned = [], [], []
    for role, text in (
        ("planner", "times_2"),
        ("coder", "plus_1"),
        ("reflector", "times_2"),
        ("planner", "so"),
        ("coder", "times_2"),
    ):
        seen.append(task.observe(state, role).text)
        outcome = task.step(state, {role: text}, RNG)
        state, rewards = outcome.state, [*rewards, dict(outcome.local_rewards)]
        earned.append(dict(outcome.earned))
    assert seen == [
        "planner times_2",
        "coder times_2 plan times_2",
        "reflector times_2 program plus_1 passed 20% 2 gave 3",
        "planner times_2 program plus_1 passed 20% 2 gave 3 reflection times_2",
        "coder times_2 program plus_1 passed 20% 2 gave 3 reflection times_2 plan so",
    ]
    assert rewards[1] == {"coder": pytest.approx(0.2)}
    assert rewards[4] == {"coder": pytest.approx(0.8)}
    assert earned[4] == {(2, "reflector"): pytest.approx(0.8), (3, "planner"): pytest.approx(0.8)}
    assert (outcome.reward, outcome.done) == (1.0, True)


def test_words_that_are_no_steps_pay_the_format_penalty():
    task, item = of_steps("negate")
    state = task.step(task.reset(item, RNG), {"planner": "negate"}, RNG).state
    outcome = task.step(state, {"coder": "negate it"}, RNG)
    assert outcome.local_rewards == {"coder": -1.0}
