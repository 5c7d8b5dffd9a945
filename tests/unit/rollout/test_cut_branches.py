"""A greedy tree continues from its best candidate alone: what compares futures is refused, and the
message names what fits."""

from __future__ import annotations

import pytest
from tiny import Notes, cast

from colearn.algorithms.at_grpo import ATGRPO
from colearn.config import build_algorithm, build_task, load_config
from colearn.contract import DecPOMDP
from colearn.contract.types import Outcome
from colearn.errors import ConfigError, TaskError
from colearn.rollout.grow import grow
from colearn.tasks.wrappers.pipeline import Pipeline


def algorithm(task: str = "plan_path", **parts: object):
    return build_algorithm(
        load_config(
            {
                "task": {"name": task},
                "models": {"*": {"path": "embedded"}},
                "algorithm": {"name": "at_grpo", **parts},
            }
        )
    )


RETURNS = (
    *("group_mean", "group_max", "group_expectile", "leave_one_out", "raw_return"),
    *("sum_then_normalize", "turn_by_turn", "role_baseline", "heterogeneous"),
)


@pytest.mark.parametrize("name", RETURNS)
def test_advantages_from_returns_are_refused_on_greedy_trees(name: str):
    with pytest.raises(ConfigError) as refused:
        algorithm(advantage={"name": name}).checked_parts()
    message = str(refused.value)
    assert message.startswith("algorithm.advantage: ")
    assert "GreedyTree continues from the best candidate alone" in message
    assert message.endswith(
        "set algorithm.advantage.name to agent_turn or question, or algorithm.rollout.name to tree "
        "or parallel"
    )


def test_values_are_refused_on_greedy_trees():
    critic = {"advantage": {"name": "gae"}, "critic": {"name": "centralized"}}
    with pytest.raises(ConfigError, match=r"^algorithm\.advantage: GAE compares rewards"):
        algorithm(**critic).checked_parts()


@pytest.mark.parametrize(
    "credit",
    [
        {"name": "backward"},
        {"name": "invocation", "trajectory": 1.0},
        {"name": "concise"},
    ],
    ids=lambda credit: credit["name"],
)
def test_credit_that_a_step_does_not_know_yet_is_refused_on_greedy_trees(credit):
    with pytest.raises(ConfigError, match=r"^algorithm\.credit: .* to mixed, team or payoff, or "):
        algorithm(credit=credit).checked_parts()


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"advantage": {"name": "question"}},
        {"credit": {"name": "team"}},
        {"credit": {"name": "invocation", "turn": 1.0}},
        {"rollout": {"name": "tree"}, "advantage": {"name": "group_mean"}},
        {"rollout": {"name": "parallel"}, "credit": {"name": "invocation", "trajectory": 1.0}},
    ],
)
def test_what_the_message_names_fits(parts):
    algorithm(**parts).checked_parts()


@pytest.mark.parametrize("task", ["search_loop", "code_loop", "search_mhgpo"])
def test_tasks_that_pay_later_are_refused_with_what_fits(task: str):
    config = load_config(
        {
            "task": {"name": task},
            "models": {"*": {"path": "embedded"}},
            "algorithm": {"name": "at_grpo"},
        }
    )
    played = build_task(config)
    with pytest.raises(ConfigError, match=r"^algorithm\.rollout: .*mappo or mhgpo, or .*tree or"):
        build_algorithm(config).check_task(played)
    for name in ("mappo", "mhgpo"):
        other = load_config(config.model_dump() | {"algorithm": {"name": name}})
        build_algorithm(other).check_task(played)


def test_at_grpo_trains_a_workflow_by_the_teams_reward():
    config = load_config(
        {
            "task": {"name": "search_loop"},
            "models": {"*": {"path": "embedded"}},
            "algorithm": {"name": "at_grpo", "credit": {"name": "team"}},
        }
    )
    build_algorithm(config).check_task(build_task(config))


class Late(Notes):
    """Pays ada's first note after the second."""

    pays = frozenset({"team", "local"})

    def step(self, state, actions, rng):
        after = super().step(state, actions, rng)
        late = {(0, "ada"): 1.0} if len(after.state.said) == 2 else {}
        return Outcome(state=after.state, reward=1.0, done=after.done, earned=late)


def test_a_late_payment_that_no_task_announced_ends_a_greedy_tree_with_a_word_on_it():
    task: DecPOMDP = Late(horizon=2, items=1)
    parts = ATGRPO().checked_parts()
    ATGRPO().check_task(task)
    with pytest.raises(TaskError, match=r"pays 'ada' at turn 1 for turn 0, .*set pays_later to"):
        grow(
            task,
            task.items("train"),
            cast(max_tokens=3).players,
            parts.rollout,
            seed=0,
            credit=parts.credit,
        )


def test_a_pipeline_pays_local_rewards_later():
    late = Pipeline(Late(horizon=2, items=1))
    assert late.pays_later
    assert not Pipeline(Notes(horizon=2, items=1)).pays_later
