"""The number of joint actions of an iteration, known before its first episode; costs by hand."""

from __future__ import annotations

from typing import Any

import pytest
from tiny import Notes, register

from colearn.config import load_config, resolve
from colearn.contract import Rollout
from colearn.errors import TaskError
from colearn.rollout.forks import Independent
from colearn.rollout.greedy_tree import GreedyTree
from colearn.rollout.shapes import Chain, Cross, KaryTree, Parallel
from colearn.rollout.size import joint_actions, largest_iteration, oversized
from colearn.runs.comparison.check import tell_large_iterations
from colearn.runs.comparison.plan import make_plan
from colearn.text.budget import large_iteration

TEAM = ("ada", "ben")


@pytest.mark.parametrize(
    ("shape", "horizon", "expected"),
    [
        (Chain(), 4, 4),
        (Parallel(k=4), 3, 12),
        (KaryTree(k=4), 4, 4 + 16 + 64 + 256),  # Proposition 4.3
        (KaryTree(k=2), 1, 2),
        (Cross(k=2), 2, 4 + 16),
        (GreedyTree(k=3), 4, 2 * 4 * 3),  # N T K
    ],
)
def test_a_tree_s_joint_actions_follow_from_its_shape(
    shape: Rollout, horizon: int, expected: int
) -> None:
    assert joint_actions(shape, TEAM, horizon) == expected


def test_the_default_tree_of_magrpo_makes_1360_joint_actions() -> None:
    """Four episodes, four turns, K = 4: 4 (4 + 16 + 64 + 256)."""
    task: Any = Notes(horizon=4, items=2)
    assert largest_iteration(task, task.items("train"), KaryTree(k=4), 4) == 1360


def test_each_tree_of_an_item_counts() -> None:
    task: Any = Notes(horizon=1, items=2)
    trees = Independent(k=4)
    assert largest_iteration(task, task.items("train"), trees, 3) == 3 * len(task.agents) * 4


class Unready(Notes):
    def reset(self, item: Any, rng: Any) -> Any:
        raise LookupError("no such key")


def test_an_item_that_cannot_begin_is_named() -> None:
    task: Any = Unready(horizon=1, items=2)
    with pytest.raises(TaskError, match=r"item-7"):
        largest_iteration(task, ["item-7"], GreedyTree(k=3), 1)


def config(budget: int) -> dict[str, Any]:
    return {
        "task": {"name": "notes", "horizon": 4, "items": 2},
        "algorithm": {"name": "magrpo", "rollout": {"k": 4}},
        "models": {"*": {"path": "none"}},
        "train": {"environment_steps": budget, "episodes": 4},
    }


@pytest.mark.parametrize(("budget", "told"), [(320, True), (1360, False), (1240, False)])
def test_an_iteration_beyond_the_budget_is_told_before_it(
    budget: int, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(monkeypatch, notes="tiny:Notes")
    run = resolve(load_config(config(budget)))
    items, shape = run.task.items("train"), run.parts.rollout
    line = oversized(run.task, items, shape, episodes=4, budget=run.budget)
    assert (line is not None) == told
    assert line is None or "up to 1,360 environment steps, the budget is 320" in line


@pytest.mark.parametrize(("budget", "told"), [(3000, True), (2720, False), (13000, False)])
def test_a_last_iteration_far_beyond_the_budget_is_told_before_the_first(
    budget: int, told: bool
) -> None:
    """Three iterations end at 4,080 of 3,000 environment steps, ten at 13,600 of 13,000."""
    line = large_iteration(1360, budget)
    assert (line is not None) == told
    assert line is None or "so a run may have 4,080; lower train.episodes" in line


def test_a_comparison_s_plan_names_the_algorithms_that_exceed_the_budget(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    register(monkeypatch, notes="tiny:Notes")
    chains = {"algorithm.rollout": {"name": "parallel", "k": 4}}
    compared = {"algorithms": {"magrpo": {}, "chains": {"algorithm.name": "magrpo", **chains}}}
    tell_large_iterations(make_plan(load_config({**config(320), "compare": compared})))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("note: magrpo: train.environment_steps: one iteration has up to 1,360 ")
