"""Answers that reasoning-gym's graders would run as code, cannot read or never finish."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from colearn.tasks.reasoning_gym import ReasoningGym, scorer

gym = pytest.importorskip("reasoning_gym")
RNG = np.random.default_rng(0)
EVALUATING = (
    *("n_queens", "countdown", "simple_integration"),  # eval, parse_expr, sympy.parse_expr
    *(
        pytest.param(name, marks=pytest.mark.slow)
        for name in (
            *("binary_matrix", "spiral_matrix", "string_insertion"),
            *("puzzle24", "polynomial_multiplication", "intermediate_integration"),
        )
    ),
)


@pytest.fixture(autouse=True, scope="module")
def _ended():
    yield
    scorer._process.cache_clear()


def say(task, text, number=0):
    state = task.reset(task.items("train")[number], RNG)
    return task.step(state, {"agent": f"<answer>{text}</answer>"}, RNG).reward


@pytest.mark.parametrize("data", EVALUATING)
def test_no_answer_runs_code_and_right_ones_earn_what_they_did(data, tmp_path):
    task = ReasoningGym(data, size=3, test_size=1)
    seen = tmp_path / "seen"
    run = f"open({str(seen)!r}, 'w').close()"
    sly = f"().__class__.__mro__[1].__subclasses__() or {run}"
    for text in (run, f"[{run}]", f"__import__('os').system('touch {seen}')", sly, "preview(x)"):
        assert say(task, text) < 0.5
        assert not seen.exists(), text
    grader = gym.create_dataset(data, size=4, seed=task.source[3])
    entry = scorer.entries(task.source)[task.items("train")[0].number]
    for text in (entry["answer"], _other_form(data, entry), "7", "[[1, 0]]"):
        if text is not None:
            assert say(task, str(text)) == grader.score_answer(str(text), entry), text


def _other_form(data, entry):
    """A right answer in the other form that a data set reads."""
    rows = str(entry["answer"]).splitlines()
    if data == "n_queens":
        return [row.split() for row in rows]
    if data == "binary_matrix":
        return [[*map(int, row.split())] for row in rows]
    return f"0 + {rows[0]}" if data == "polynomial_multiplication" else None


def test_an_answer_that_never_ends_earns_nothing_and_the_next_one_is_read():
    task = ReasoningGym("polynomial_multiplication", size=4, test_size=2)
    assert say(task, "9**9**9**9") == 0.0
    entry = scorer.entries(task.source)[task.items("train")[0].number]
    assert say(task, entry["answer"]) == 1.0


@pytest.mark.slow
def test_entries_are_the_same_whatever_seed_the_hashes_of_a_process_have():
    program = (
        "from colearn.tasks.reasoning_gym import ReasoningGym as R\n"
        "for data in ('word_ladder', 'isomorphic_strings', 'chain_sum'):\n"
        "    print([item.prompt.text for item in R(data, size=3, test_size=1).items('train')])"
    )
    first, second = (
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        for seed in ("1", "2")
    )
    assert len(first) == 3 and first == second


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("prime_factorization", "none"),
        ("boxnet", "null"),
        ("game_of_life", "{}"),
        ("coin_flip", "1e400"),
    ],
)
def test_an_answer_at_which_the_grader_raises_is_a_wrong_one(data, text):
    task = ReasoningGym(data, size=2, test_size=1)
    entries = gym.create_dataset(data, size=3, seed=task.source[3])
    with pytest.raises(Exception):  # noqa: B017 - any, which the task must survive
        entries.score_answer(text, entries[task.items("train")[0].number])
    assert say(task, text) == 0.0
