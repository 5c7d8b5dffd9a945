"""The exact value of a team: its tables are what the agents do, its value what they earn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny import Notes

from colearn.config import load_config
from colearn.errors import ConfigError
from colearn.rollout.grow import grow
from colearn.rollout.shapes import Chain
from colearn.training.evaluation.evaluate import exact_evaluator
from colearn.training.evaluation.exact import COLD, DECODINGS, ExactEvaluator
from colearn.training.load_team import load_team
from colearn.training.loop import Experiment
from colearn.training.team import Team

EPISODES = 3000


def settings() -> dict[str, Any]:
    return {
        "task": {
            "name": "dpomdp",
            "problem": "two_step",
            "penalty": -10.0,
            "opening": "start",
            "turn": "{observation}",
            "reward_scale": 0.5,
        },
        "models": {"*": {"path": "embedded-tiny:7", "learning_rate": 1e-2}},
        "agents": {"*": {"sampling": {"max_tokens": 2, "temperature": 1.3}}},
        "critic": {"path": "embedded-tiny:7", "learning_rate": 1e-2},
        "train": {"environment_steps": 12, "episodes": 3},
        "evaluation": {"exact": True, "every": 1, "transcripts": 0},
        "run": {"device": "cpu"},
    }


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLEARN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def team(_cache: Any) -> Team:
    """Warm for a moment only: replies are rejected now and then, and hot sampling adds to it."""
    return load_team(load_config(settings()))


@pytest.fixture(scope="module")
def exact(team: Team) -> Any:
    return exact_evaluator(team)


def played(team: Team, episodes: int) -> list[Any]:
    items = list(team.run.task.items("test")) * episodes
    return grow(team.run.task, items, team.players, Chain(), seed=3)[0]


@pytest.fixture(scope="module")
def episodes(team: Team) -> list[Any]:
    return played(team, EPISODES)


def usual(team, agent, action):
    """Whether a reply is a legal word in its usual tokens, the end token included."""
    if action.text not in team.run.task.action_words(agent):
        return False
    chat = team.players[agent].spec.chat_format
    return list(action.tokens) == [*chat.tokenizer(action.text)["input_ids"], chat.end_id]


def strict_return(team, tree):
    """What an episode earns where any other spelling of a legal word is rejected, too; and whether
    that happened."""
    total = 0.0
    for turn, node in enumerate(tree.nodes[1:]):
        if not all(usual(team, agent, action) for agent, action in node.actions.items()):
            return total + team.run.task.rejection_reward(turn), True
        total += node.reward
    return total, False


@pytest.mark.slow
def test_the_exact_value_is_what_many_episodes_earn_on_average(team, episodes, exact):
    returns = np.array([strict_return(team, tree)[0] for tree in episodes])
    error = returns.std() / EPISODES**0.5
    assert abs(returns.mean() - exact.metrics()["exact_return"]) < 4 * error
    assert error < 0.08, "or the comparison says nothing"


@pytest.mark.slow
def test_replies_are_rejected_as_often_as_the_tables_say(team, episodes, exact):
    rejected = np.mean([strict_return(team, tree)[1] for tree in episodes])
    expected = exact.metrics()["exact_rejected"]
    assert expected > 0.005, "or there is nothing to see"
    assert abs(rejected - expected) < 4 * (expected / EPISODES) ** 0.5


def test_a_table_holds_the_generators_own_probabilities(team, exact):
    policy, _ = exact.evaluate()
    privates = {agent: exact.histories.private(agent) for agent in team.run.task.agents}
    seen = 0
    for tree in played(team, 60):
        if strict_return(team, tree)[1]:
            continue
        history: dict[str, tuple[int, ...]] = dict.fromkeys(tree.agents, ())
        for turn, node in enumerate(tree.nodes[1:]):
            for agent, action in node.actions.items():
                number = team.run.task.action_words(agent).index(action.text)
                place = privates[agent][turn].index(history[agent])
                drawn = np.exp(sum(action.logprobs))
                assert policy[agent][turn][place, number] == pytest.approx(drawn, abs=1e-5)
                own = node.state.observations[tree.agents.index(agent)]
                history[agent] = (*history[agent], number, own)
                seen += 1
    assert seen > 150


def test_a_small_token_budget_changes_nothing(team, exact):
    small = exact.__class__(team.run.task, exact.specs, exact.networks, token_budget=12)
    for agent, tables in exact.evaluate()[0].items():
        for table, other in zip(tables, small.evaluate()[0][agent], strict=True):
            assert table == pytest.approx(other, abs=1e-6)
    # 1e-6 of a probability, of each agent at each turn, moves the value by that much of a reward
    largest = abs(team.run.task.model.reward).max() * team.run.task.reward_scale
    bound = 1e-6 * largest * len(team.run.task.agents) * team.run.task.horizon
    assert small.metrics() == pytest.approx(exact.metrics(), abs=bound)


def test_the_rows_of_a_sharp_policy_sum_to_at_most_one():
    """In float32, and where a history is read in two rows, they were above it by 2e-6."""
    words = {"listen": "listen now", "open-left": "open the left", "open-right": "open the right"}
    task = {"name": "dpomdp", "problem": "dec_tiger", "words": words, "opening": "start"}
    whole = exact_evaluator(
        load_team(load_config(settings() | {"task": {**task, "turn": "{observation}"}}))
    )
    for network in whole.networks.values():
        with torch.no_grad():
            network.base.causal.model.norm.weight *= 8.0  # all logits
    for budget in (16384, 40):
        evaluator = ExactEvaluator(whole.task, whole.specs, whole.networks, token_budget=budget)
        sums = [
            table.sum(axis=1).max()
            for decoding in DECODINGS
            for tables in evaluator.evaluate(decoding)[0].values()
            for table in tables
        ]
        assert max(sums) <= 1.0 + 1e-14
        assert max(sums) > 0.99, "or the policy is not sharp"


def test_the_cold_value_is_that_of_the_same_weights_sampled_colder(exact):
    colder = settings() | {"agents": {"*": {"sampling": {"max_tokens": 2, "temperature": COLD}}}}
    metrics = exact_evaluator(load_team(load_config(colder))).metrics()
    assert exact.metrics()["exact_return_cold"] == pytest.approx(metrics["exact_return"])
    assert metrics["exact_return_cold"] == pytest.approx(metrics["exact_return"])
    assert abs(exact.metrics()["exact_return"] - metrics["exact_return"]) > 0.1


def test_the_greedy_value_is_what_a_greedy_episode_earns(team, exact):
    """two_step is deterministic, and so is greedy decoding."""
    items = list(team.run.task.items("test"))
    [tree] = grow(team.run.task, items, team.players, Chain(), seed=3, greedy=True)[0]
    assert exact.metrics()["exact_return_greedy"] == pytest.approx(tree.returns(1.0)[0])


def annealed(**sampling: Any) -> Any:
    agents = {"*": {"sampling": {"max_tokens": 2, **sampling}}}
    return load_config(settings() | {"agents": agents})


@pytest.fixture(scope="module")
def cooled(_cache: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A run that cools: its record, its folder, and the actions of its first trees."""
    folder = tmp_path_factory.mktemp("cooled") / "run"
    run = Experiment(annealed(temperature=0.4, anneal={"start": 1.3, "end": 1.0}), folder)
    drawn = [[node.actions for node in tree.nodes] for tree in run.trees()]
    return run.run(), folder, drawn


def test_an_annealed_run_samples_and_learns_at_the_temperature_of_the_iteration(
    cooled: Any, tmp_path: Path
) -> None:
    _, folder, drawn = cooled
    hot = Experiment(annealed(temperature=1.3), tmp_path / "hot")
    assert drawn == [[node.actions for node in tree.nodes] for tree in hot.trees()]
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    updates = [line["metrics"] for line in lines if line["kind"] == "update"]
    assert len(updates) >= 2
    for metrics in updates:
        assert metrics["agent_1/logprob_mismatch"] < 1e-5


def test_an_annealed_run_is_evaluated_at_its_last_temperature():
    cooling = annealed(temperature=0.4, anneal={"start": 1.3, "end": 1.0})
    metrics, cold = exact_evaluator(load_team(cooling)).metrics(), annealed(temperature=0.4)
    assert metrics == pytest.approx(exact_evaluator(load_team(cold)).metrics())


def test_a_run_writes_its_exact_learning_curve(cooled: Any) -> None:
    result, _, _ = cooled
    assert result.last["exact_return"] != result.first["exact_return"]
    assert -20.0 <= result.last["exact_return"] <= 4.0
    assert 0.0 <= result.last["exact_rejected"] <= 1.0


def test_a_task_that_is_not_finite_cannot_be_evaluated_exactly(exact):
    with pytest.raises(ConfigError, match=r"^evaluation\.exact: needs a finite task [^\n]+$"):
        ExactEvaluator(Notes(), exact.specs, exact.networks, token_budget=100)


@pytest.mark.parametrize("cut", [{"top_p": 0.9}, {"top_k": 2}, {"stop": ["a"]}])
def test_a_cut_distribution_cannot_be_evaluated_exactly(cut):
    chosen = settings() | {"agents": {"*": {"sampling": {"max_tokens": 2, **cut}}}}
    with pytest.raises(ConfigError, match=r"^evaluation\.exact: agents\.agent_1\.sampling [^\n]+$"):
        load_team(load_config(chosen))


def test_greedy_play_cannot_be_evaluated_exactly():
    greedy = {"agents": {"*": {"sampling": {"max_tokens": 2, "temperature": 0}}}}
    chosen = settings() | greedy | {"algorithm": {"name": "untrained"}, "critic": None}
    with pytest.raises(ConfigError, match=r"^evaluation\.exact: agents\.agent_1\.sampling [^\n]+$"):
        load_team(load_config(chosen))
