"""Models with their own number of epochs and minibatch size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from local_learners import local_learner
from tiny import Notes, cast, play, register, save_model
from updates import new_critics, new_updater, value_network

from colearn.algorithms.collm_cc import CoLLMCC
from colearn.algorithms.magrpo import MAGRPO
from colearn.config import Config, OptimizerSettings, resolve
from colearn.contract import NetworkKey
from colearn.contract.algorithm import ValueLoss
from colearn.contract.host import one_by_one
from colearn.errors import ConfigError
from colearn.estimate import estimate
from colearn.estimate.architecture import Architectures
from colearn.estimate.work import plan_updates
from colearn.models.network import Network
from colearn.rollout.shapes import KaryTree
from colearn.training.learners.learner import NetworkLearner
from colearn.training.learners.minibatch import UpdateSchedule
from colearn.training.load_team import load_team
from colearn.training.update.build_updater import build_updater
from colearn.training.update.updater import Updater

FROZEN = CoLLMCC(value_loss=ValueLoss(frozen_targets=True))


def updated(
    algorithm: Any, schedules: Mapping[str, UpdateSchedule], **settings: Any
) -> tuple[Updater, dict[str, float]]:
    """A team of two with a model each, and the metrics of its first update."""
    team = cast(shared=False)
    parts = algorithm.parts()
    trees = play(Notes(items=4), team, parts.rollout)

    def learner(name: str, network: Network) -> NetworkLearner:
        return local_learner(
            name, network, OptimizerSettings(learning_rate=1e-3), token_budget=4096
        )

    critic = None
    if parts.critic is not None:
        learners = {"team": learner("team", value_network(9, dtype=torch.float32))}
        critic = new_critics(parts.critic, learners)
    actors = {agent: learner(agent, team.network(agent)) for agent in team.voices}
    updater = new_updater(parts, actors, critic=critic, own_schedules=schedules, **settings)
    return updater, updater.update(trees, 0)


def weights(updater: Updater, name: str) -> torch.Tensor:
    return torch.cat(
        [p.detach().flatten() for p in updater.actors.learners[name].parameters.values()]
    )


@pytest.mark.parametrize("algorithm", [MAGRPO(), FROZEN], ids=["group", "critic"])
def test_a_model_with_its_own_schedule_learns_what_it_would_with_all_on_that_schedule(
    algorithm: Any,
) -> None:
    """Bit for bit; and the others learn what they learn without it."""
    mixed, metrics = updated(algorithm, {"ada": UpdateSchedule(3, 6)})
    fast, _ = updated(algorithm, {}, epochs=3, minibatch=6)
    slow, _ = updated(algorithm, {})
    assert torch.equal(weights(mixed, "ada"), weights(fast, "ada"))
    assert torch.equal(weights(mixed, "ben"), weights(slow, "ben"))
    assert not torch.equal(weights(fast, "ada"), weights(slow, "ada"))
    assert not torch.equal(weights(fast, "ben"), weights(slow, "ben"))
    steps = mixed.actors.learners["ada"].steps, mixed.actors.learners["ben"].steps
    assert steps == (metrics["ada/optimizer_steps"], metrics["optimizer_steps"])
    assert steps[0] == fast.actors.learners["ada"].steps > 3 and steps[1] == 1


def test_a_model_with_its_own_schedule_reports_what_the_others_report() -> None:
    _, metrics = updated(MAGRPO(rollout=KaryTree(2)), {"ada": UpdateSchedule(1, None)})
    told = {key.removeprefix("ada/") for key in metrics if key.startswith("ada/")}
    others = {key.removeprefix("ben/") for key in metrics if key.startswith("ben/")}
    assert told == others | {"optimizer_steps"} and "nll" in others
    assert metrics["ada/learning_rate"] == 1e-3


def test_where_every_model_has_its_own_schedule_no_step_is_joint() -> None:
    updater, metrics = updated(
        MAGRPO(), {"ada": UpdateSchedule(1, None), "ben": UpdateSchedule(2, None)}
    )
    assert (updater.actors.learners["ada"].steps, updater.actors.learners["ben"].steps) == (1, 2)
    assert metrics["optimizer_steps"] == 0.0


def test_a_critic_with_its_own_schedule_takes_its_steps_before_those_of_the_actors() -> None:
    updater, metrics = updated(FROZEN, {}, critic_schedule=UpdateSchedule(3, None))
    assert updater.critic is not None
    assert updater.critic.learners["team"].steps == 3
    assert updater.actors.learners["ada"].steps == metrics["optimizer_steps"] == 1
    assert metrics["critic/team/learning_rate"] == 1e-3


def test_a_model_that_has_gone_far_stops_alone() -> None:
    """The limit lies between what its first epochs move it, measured, and its last."""
    free, _ = updated(MAGRPO(), {"ada": UpdateSchedule(4, None)})
    held, metrics = updated(MAGRPO(), {"ada": UpdateSchedule(4, None)}, target_kl=1e-12)
    assert (free.actors.learners["ada"].steps, held.actors.learners["ada"].steps) == (4, 2)
    assert metrics["ada/optimizer_steps"] == 2.0


def test_each_call_that_may_run_beside_others_has_the_key_of_its_model() -> None:
    called: list[set[NetworkKey]] = []

    def together(calls: Mapping[NetworkKey, Any]) -> dict[NetworkKey, Any]:
        called.append(set(calls))
        return one_by_one(calls)

    updated(FROZEN, {"ada": UpdateSchedule(2, None)}, together=together)
    ada, ben, team = (
        NetworkKey("actor", "ada"),
        NetworkKey("actor", "ben"),
        NetworkKey("critic", "team"),
    )
    # old log-probabilities; the joint steps; a model's own epochs
    assert called == [{ada}, {team}, {ben}, {ada}]


# --- by configuration -----------------------------------------------------------------------------


@pytest.fixture
def team(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    register(monkeypatch, notes="tiny:Notes")
    folder = str(save_model(tmp_path / "model"))
    return {
        "task": {"name": "notes", "items": 2},
        "models": {"ada": {"path": folder, "epochs": 3, "minibatch": 2}, "*": {"path": folder}},
        "agents": {"*": {"sampling": {"max_tokens": 4}}},
        "critic": {"path": folder},
        "run": {"device": "cpu"},
        "train": {"episodes": 2},
    }


def test_a_config_gives_each_model_its_epochs_and_minibatches(team: dict[str, Any]) -> None:
    config = Config.model_validate(team | {"algorithm": {"name": "magrpo"}})
    updater = build_updater(load_team(config))
    assert updater is not None
    assert updater.own_schedules == {"ada": UpdateSchedule(3, 2)}
    assert updater.schedule == UpdateSchedule(1, None)


def test_the_dry_run_counts_a_models_own_epochs() -> None:
    players = cast(shared=False)
    trees = play(Notes(items=2), players)

    def tokens(**own: int) -> Mapping[str, int]:
        config = Config.model_validate(
            {
                "task": {"name": "notes"},
                "algorithm": {"name": "magrpo"},
                "models": {"ada": {"path": "x", **own}, "ben": {"path": "x"}},
                "agents": {"ada": {"model": "ada"}, "ben": {"model": "ben"}},
            }
        )
        updates = plan_updates(resolve(config, task=Notes()), trees, Architectures(Notes(), config))
        return {key: total.tokens for key, total in updates.totals.items()}

    often, once = tokens(epochs=3), tokens()
    assert often[NetworkKey("actor", "ada")] == 3 * once[NetworkKey("actor", "ada")] > 0
    assert often[NetworkKey("actor", "ben")] == once[NetworkKey("actor", "ben")]


@pytest.mark.parametrize("check", [load_team, estimate], ids=["run", "dry run"])
def test_own_epochs_are_refused_where_the_critic_gives_new_advantages_in_each_joint_minibatch(
    team: dict[str, Any], check: Any
) -> None:
    recomputed = {"name": "collm_cc", "value_loss": {"frozen_targets": False}}
    with pytest.raises(ConfigError, match=r"^models\.ada\.epochs: .*value_loss\.frozen_targets"):
        check(Config.model_validate(team | {"algorithm": recomputed}))
