"""A critic with its own number of epochs and minibatch size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from local_learners import local_learner
from tiny import Notes, cast, play, register, save_model
from updates import new_critics, new_updater, value_network

from colearn.algorithms.collm_cc import CoLLMCC
from colearn.config import Config, OptimizerSettings, resolve
from colearn.contract import NetworkKey
from colearn.contract.algorithm import ValueLoss
from colearn.contract.host import one_by_one
from colearn.estimate.architecture import Architectures
from colearn.estimate.work import Updates, plan_updates
from colearn.models.network import Network
from colearn.training.learners.learner import NetworkLearner
from colearn.training.learners.minibatch import UpdateSchedule
from colearn.training.load_team import load_team
from colearn.training.update.build_updater import build_updater
from colearn.training.update.updater import Updater

FROZEN = CoLLMCC(value_loss=ValueLoss(frozen_targets=True))
TEAM = NetworkKey("critic", "team")


def updated(**settings: Any) -> tuple[Updater, dict[str, float]]:
    """A team of two with a model each and a critic, and the metrics of its first update."""
    team = cast(shared=False)
    parts = FROZEN.parts()
    assert parts.critic is not None
    trees = play(Notes(items=4), team, parts.rollout)

    def learner(name: str, network: Network) -> NetworkLearner:
        return local_learner(
            name, network, OptimizerSettings(learning_rate=1e-3), token_budget=4096
        )

    learners = {"team": learner("team", value_network(9, dtype=torch.float32))}
    critic = new_critics(parts.critic, learners)
    actors = {agent: learner(agent, team.network(agent)) for agent in team.voices}
    updater = new_updater(parts, actors, critic=critic, **settings)
    return updater, updater.update(trees, 0)


def weights(learner: Any) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in learner.parameters.values()])


def test_a_critic_with_its_own_schedule_learns_what_it_would_with_all_on_that_schedule() -> None:
    """Bit for bit; and the actors learn what they learn without it."""
    mixed, _ = updated(critic_schedule=UpdateSchedule(3, 6))
    fast, _ = updated(epochs=3, minibatch=6)
    slow, _ = updated()
    assert mixed.critic is not None and fast.critic is not None
    own, joint = mixed.critic.learners["team"], fast.critic.learners["team"]
    assert torch.equal(weights(own), weights(joint))
    for agent in ("ada", "ben"):
        actors = [one.actors.learners[agent] for one in (mixed, slow, fast)]
        assert torch.equal(weights(actors[0]), weights(actors[1]))
        assert not torch.equal(weights(actors[0]), weights(actors[2]))


def test_each_call_that_may_run_beside_others_has_the_key_of_its_model() -> None:
    called: list[set[NetworkKey]] = []

    def together(calls: Mapping[NetworkKey, Any]) -> dict[NetworkKey, Any]:
        called.append(set(calls))
        return one_by_one(calls)

    updated(critic_schedule=UpdateSchedule(2, None), together=together)
    actors = {NetworkKey("actor", "ada"), NetworkKey("actor", "ben")}
    assert [calls for calls in called if calls] == [{TEAM}, {TEAM}, actors]


# --- by configuration -----------------------------------------------------------------------------


@pytest.fixture
def team(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    register(monkeypatch, notes="tiny:Notes")
    folder = str(save_model(tmp_path / "model"))
    return {
        "task": {"name": "notes", "items": 2},
        "models": {"*": {"path": folder}},
        "agents": {"*": {"sampling": {"max_tokens": 4}}},
        "critic": {"path": folder, "epochs": 3, "minibatch": 2},
        "run": {"device": "cpu"},
        "train": {"episodes": 2},
    }


@pytest.mark.parametrize(
    ("critic", "schedule"),
    [
        ({"epochs": 3, "minibatch": 2}, UpdateSchedule(3, 2)),
        ({"minibatch": 2}, UpdateSchedule(1, 2)),
        ({"head": "ridge"}, UpdateSchedule(1, None)),
        ({}, None),
    ],
)
def test_a_config_gives_the_critic_its_epochs_and_minibatches(
    team: dict[str, Any], critic: dict[str, Any], schedule: UpdateSchedule | None
) -> None:
    frozen = {"name": "collm_cc", "value_loss": {"frozen_targets": True}}
    own = {"algorithm": frozen, "critic": {"path": team["critic"]["path"]} | critic}
    updater = build_updater(load_team(Config.model_validate(team | own)))
    assert updater is not None
    assert updater.critic_schedule == schedule
    assert updater.schedule == UpdateSchedule(1, None)


def test_the_dry_run_counts_a_critics_own_epochs(team: dict[str, Any]) -> None:
    players = cast(shared=False)
    trees = play(Notes(items=2), players)

    def tokens(**own: int) -> Mapping[NetworkKey, int]:
        config = Config.model_validate(
            {
                "task": {"name": "notes"},
                "algorithm": {"name": "collm_cc", "value_loss": {"frozen_targets": True}},
                "models": {"ada": {"path": "x"}, "ben": {"path": "x"}},
                "agents": {"ada": {"model": "ada"}, "ben": {"model": "ben"}},
                "critic": {"path": team["critic"]["path"], **own},
            }
        )
        updates = plan_updates(resolve(config, task=Notes()), trees, Architectures(Notes(), config))
        return {key: total.tokens for key, total in updates.totals.items()}

    often, once = tokens(epochs=3), tokens()
    assert often[TEAM] == 3 * once[TEAM] > 0
    assert often[NetworkKey("actor", "ada")] == once[NetworkKey("actor", "ada")]


def plan_of_adapters(path: str, algorithm: Any, *, joint: bool, **critic: Any) -> Updates:
    """The work of two episodes for adapters of one base."""
    model = {"path": path, "lora": {"rank": 4}}
    config = Config.model_validate(
        {
            "task": {"name": "notes"},
            "algorithm": algorithm,
            "models": {"ada": model, "ben": model},
            "agents": {"ada": {"model": "ada"}, "ben": {"model": "ben"}},
            "critic": {**model, **critic} if algorithm["name"] == "collm_cc" else None,
            "train": {"joint_passes": joint},
        }
    )
    trees = play(Notes(items=2), cast(shared=False))
    return plan_updates(resolve(config, task=Notes()), trees, Architectures(Notes(), config))


@pytest.mark.parametrize(("joint", "micro_batches"), [(False, [1, 1]), (True, [1, 0])])
def test_the_dry_run_counts_joint_passes_once(
    team: dict[str, Any], joint: bool, micro_batches: list[int]
) -> None:
    """Two episodes are a row each for both agents: four rows in one micro-batch, or two in each."""
    updates = plan_of_adapters(team["critic"]["path"], {"name": "magrpo"}, joint=joint)
    assert [total.micro_batches for total in updates.totals.values()] == micro_batches
    assert {len(work.largest) for work in updates.works.values()} == {4 if joint else 2}


@pytest.mark.parametrize(
    ("critic", "frozen", "micro_batches"),
    [
        ({}, False, [1, 0, 1]),
        ({}, True, [1, 0, 0]),
        ({"epochs": 2}, True, [1, 0, 2]),
        ({"checkpointing": True}, True, [1, 0, 1]),
    ],
)
def test_the_dry_run_counts_a_critic_with_the_actors_only_if_it_is_trained_with_them(
    team: dict[str, Any], critic: dict[str, Any], frozen: bool, micro_batches: list[int]
) -> None:
    """Not if the actors' advantages need its values before, or if its passes differ."""
    algorithm = {"name": "collm_cc", "value_loss": {"frozen_targets": frozen}}
    updates = plan_of_adapters(team["critic"]["path"], algorithm, joint=True, **critic)
    assert [total.micro_batches for total in updates.totals.values()] == micro_batches
