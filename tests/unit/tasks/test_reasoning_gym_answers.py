"""Answers that reasoning-gym's graders would run as code, cannot read or never finish."""

from __future__ import annotations

import numpy as np
import pytest

from colearn.tasks.reasoning_gym import ReasoningGym, scorer

gym = pytest.importorskip("reasoning_gym")
RNG = np.random.default_rng(0)
EVALUATING = ("n_queens", "countdown", "simple_integration")
"""They call eval, an imported parse_expr, and sympy.parse_expr."""


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
    right = [str(entry["answer"]), "7", "[[1, 0]]"]
    if data == "n_queens":
        right.append(str([row.split() for row in str(entry["answer"]).splitlines()]))
    for text in right:
        assert say(task, text) == grader.score_answer(text, entry), text


def test_an_answer_that_never_ends_earns_nothing_and_the_next_one_is_read(tmp_path, monkeypatch):
    script = scorer.SCRIPT.read_text()
    assert script.count("SECONDS = 4\n") == 1
    monkeypatch.setattr(scorer, "SCRIPT", tmp_path / scorer.SCRIPT.name)
    scorer.SCRIPT.write_text(script.replace("SECONDS = 4\n", "SECONDS = 1\n"))
    task = ReasoningGym("polynomial_multiplication", size=4, test_size=2)
    assert say(task, "9**9**9**9") == 0.0
    entry = scorer.entries(task.source)[task.items("train")[0].number]
    assert say(task, entry["answer"]) == 1.0


def test_entries_are_the_same_whatever_seed_the_hashes_of_a_process_have(monkeypatch):
    prompts = []
    for seed in ("1", "2"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        scorer.entries.cache_clear()
        scorer._process.cache_clear()
        task = ReasoningGym("isomorphic_strings", size=3, test_size=1)
        prompts.append([item.prompt.text for item in task.items("train")])
    assert prompts[0] == prompts[1]


def test_an_answer_at_which_the_grader_raises_is_a_wrong_one():
    task = ReasoningGym("coin_flip", size=2, test_size=1)
    entries = gym.create_dataset("coin_flip", size=3, seed=task.source[3])
    with pytest.raises(OverflowError):
        entries.score_answer("1e400", entries[task.items("train")[0].number])
    assert say(task, "1e400") == 0.0
