"""A critic, a learner and a host of another package: one file each, named in the config."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import backward_host
import pytest
import torch
from own_last import TEAM, OwnLast
from tiny import Notes, cast, play, register, save_model

from colearn.config import Config
from colearn.contract import NetworkKey
from colearn.estimate.run_estimate import estimate
from colearn.rollout.grow import grow
from colearn.training.load_team import load_team
from colearn.training.team import Team
from colearn.training.update.build_updater import build_updater


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_model(tmp_path_factory.mktemp("models") / "model"))


@pytest.fixture(autouse=True)
def notes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    register(monkeypatch, notes="tiny:Notes")
    yield
    backward_host.CALLED.clear()


def config_of(model: str, *, run: Any = None, algorithm: Any = None, lora: Any = None) -> Config:
    """Two agents with a model each and a central critic."""
    base = {"path": model, "learning_rate": 1e-2, "lora": lora}
    return Config.model_validate(
        {
            "task": {"name": "notes", "agents": 2, "horizon": 2, "items": 3},
            "algorithm": {"name": "collm_cc", **(algorithm or {})},
            "models": {"*": base},
            "critic": base,
            "agents": {"*": {"sampling": {"max_tokens": 3}}},
            "train": {"episodes": 3},
            "run": {"device": "cpu", **(run or {})},
        }
    )


def learned(config: Config) -> tuple[Team, dict[str, float]]:
    parts = load_team(config)
    updater = build_updater(parts)
    assert updater is not None
    items = parts.run.task.items("train")
    metrics = {}
    for iteration in range(2):
        trees, _ = grow(
            parts.run.task, items, parts.players, parts.run.parts.rollout, seed=iteration
        )
        metrics = updater.update(trees, iteration)
    return parts, metrics


def weights(parts: Team) -> dict[str, torch.Tensor]:
    return {
        f"{key}.{name}": weight.clone()
        for key, learner in parts.learners.items()
        for name, weight in learner.weights().items()
    }


def alike(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.fixture(scope="module")
def usual(model: str) -> dict[str, torch.Tensor]:
    """The weights of a team that learns in this process's main thread."""
    with pytest.MonkeyPatch.context() as patch:
        register(patch, notes="tiny:Notes")
        return weights(learned(config_of(model))[0])


OWN_LAST = {
    "critic": {"name": "own_last:OwnLast"},
    "advantage": {"name": "own_last:OwnLastAdvantage"},
}


def test_a_critic_of_another_kind_of_value_trains_a_team(model: str) -> None:
    config = config_of(model, algorithm=OWN_LAST)
    before = weights(load_team(config))
    parts, metrics = learned(config)
    # a value of each of two agents at each of two joint actions of three episodes
    assert metrics["advantage/actions"] == 2 * 2 * 3
    moved = {
        name.split(".")[0] for name, now in weights(parts).items() if (now != before[name]).any()
    }
    assert moved == {"actor-ada", "actor-ben", "critic-team"}


def test_its_values_are_those_of_the_agent_that_a_mark_names() -> None:
    (tree, *_) = play(Notes(items=1, horizon=1), cast())
    critic = OwnLast()
    row = critic.row(tree, TEAM, lambda text: list(text.encode()), limit=9999)
    assert [mark.agent for mark in row.marks] == list(tree.nodes[1].actions)
    values = critic.values(tree, TEAM, row, [1.0, 2.0])
    assert list(values.values()) == [(None, 1.0), (None, 2.0)]
    assert critic.numbers(tree, TEAM, row, values) == (1.0, 2.0)
    # the agent's own words come last, after the other's
    ends = [bytes(row.tokens[: mark.index + 1]).decode() for mark in row.marks]
    for end, (agent, action) in zip(ends, tree.nodes[1].actions.items(), strict=True):
        assert end.endswith(f"[{agent}] {action.text}")


def test_a_kind_of_learner_steps_its_networks_and_is_counted_by_the_dry_run(model: str) -> None:
    chosen = config_of(model, run={"learner": {"name": "plain_learner:Plain"}})
    parts, metrics = learned(chosen)
    assert metrics["ada/learning_rate"] == 1e-2 and parts.learners
    assert {learner.steps for learner in parts.learners.values()} == {2}
    networks = {memory.key: memory for memory in estimate(chosen).networks}
    own = networks[NetworkKey("actor", "ada")]
    assert (own.adam, own.gradients) == (0, 4 * own.trained) and own.trained > 0


def test_a_host_makes_the_calls_on_its_models(model: str, usual: dict[str, torch.Tensor]) -> None:
    parts, _ = learned(config_of(model, run={"host": "backward_host:Backward"}))
    # in each of two updates: the critic's pass with its step, both actors' passes with theirs
    actors, called = ["actor-ben", "actor-ada"], [names for names in backward_host.CALLED if names]
    assert called == 2 * [["critic-team"], actors]
    assert alike(weights(parts), usual)


def test_models_of_a_host_may_learn_in_threads(
    model: str, usual: dict[str, torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    from colearn.training.learners.learner import NetworkLearner

    seen, real = set(), NetworkLearner.step

    def noted(self: NetworkLearner, done: float) -> dict[str, float]:
        seen.add(threading.current_thread().name.split("_")[0])
        return real(self, done)

    monkeypatch.setattr(NetworkLearner, "step", noted)
    parts, _ = learned(config_of(model, run={"host": {"name": "local", "threads": True}}))
    parts.close()
    assert seen == {"model"}
    assert alike(weights(parts), usual)


def test_models_on_one_base_take_turns_and_others_run_side_by_side(model: str) -> None:
    host = {"host": {"name": "local", "threads": True}}
    apart = load_team(config_of(model, run=host))
    barrier = threading.Barrier(3)
    # all three wait for each other: none could pass alone
    assert len(apart.together(dict.fromkeys(apart.learners, lambda: barrier.wait(600)))) == 3
    apart.close()
    shared, running = load_team(config_of(model, lora={"rank": 2}, run=host)), threading.Lock()

    def alone() -> bool:
        free = running.acquire(blocking=False)
        threading.Event().wait(0.02)
        if free:
            running.release()
        return free

    assert set(shared.together(dict.fromkeys(shared.learners, alone)).values()) == {True}
    shared.close()
