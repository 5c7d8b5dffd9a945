"""A critic's own epochs and minibatches, and its means by item, in runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tiny import register, save_model

from colearn.config import load_config
from colearn.contract import NetworkKey
from colearn.errors import ConfigError
from colearn.experiment.loop import Experiment
from colearn.record import RunFolder

TEAM = NetworkKey("critic", "team")


@pytest.fixture(scope="module", autouse=True)
def _notes() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        register(patch, notes="tiny:Notes")
        yield


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_model(tmp_path_factory.mktemp("model"))


def settings(model: str, frozen: bool = True, **critic: Any) -> dict[str, Any]:
    return {
        "task": {"name": "notes", "horizon": 2, "items": 3},
        "algorithm": {
            "name": "collm_cc",
            "value_loss": {"rescale": True, "frozen_targets": frozen},
            "advantage": {"lam": 1.0},
        },
        "models": {"*": {"path": model, "learning_rate": 3e-2}},
        "agents": {"*": {"sampling": {"max_tokens": 6}}},
        "critic": {"path": model, "learning_rate": 3e-2} | critic,
        "train": {"environment_steps": 16, "episodes": 4},
        "run": {"device": "cpu", "checkpoint_every": 1},
    }


def test_a_critic_takes_its_own_number_of_steps(model: str, tmp_path: Path) -> None:
    config = load_config(settings(model, epochs=3, minibatch=4))
    experiment = Experiment(config, tmp_path / "run")
    experiment.run()
    learners = experiment.assembly.host.learners
    # two iterations of 8 joint actions: 3 epochs of two minibatches, and one step of each actor
    assert learners[TEAM].steps == 12
    assert learners[NetworkKey("actor", "ada")].steps == 2


def test_its_steps_change_no_actor_within_the_iteration(model: str, tmp_path: Path) -> None:
    weights = []
    for number, own in enumerate(({}, {"epochs": 4})):
        config = load_config(settings(model, **own), {"train.environment_steps": 8})
        experiment = Experiment(config, tmp_path / str(number))
        experiment.run()
        weights.append(experiment.assembly.host.learners[NetworkKey("actor", "ben")].weights())
    one, other = weights
    assert all(bool((one[name] == other[name]).all()) for name in one)


def test_a_run_with_means_by_item_goes_on_from_its_checkpoint_as_if_it_had_not_stopped(
    model: str, tmp_path: Path
) -> None:
    config = settings(model, baseline="item")
    Experiment(load_config(config), tmp_path / "whole").run()
    Experiment(load_config(config, {"train.environment_steps": 8}), tmp_path / "parts").run()
    Experiment(load_config(config), tmp_path / "parts", resume=True).run()

    def told(name: str) -> list[Any]:
        lines = [line for line in RunFolder(tmp_path / name).lines() if line.kind == "update"]
        return [{k: v for k, v in x.metrics.items() if "seconds" not in k} for x in lines]

    assert len(told("whole")) == 2
    keys = ("critic/value_loss", "critic/explained_variance", "ada/grad_norm")
    for whole, parts in zip(told("whole"), told("parts"), strict=True):
        assert {key: whole[key] for key in keys} == {key: parts[key] for key in keys}


@pytest.mark.parametrize("frozen", [True, False])
def test_an_item_s_mean_is_part_of_the_value(frozen: bool, model: str, tmp_path: Path) -> None:
    """A network that learns nothing: what is explained is what means by item explain."""
    config = settings(model, frozen, baseline="item", learning_rate=1e-12)
    longer = {"train.environment_steps": 80, "models.*.learning_rate": 1e-12}
    told = []
    for name, changes in (("item", {}), ("none", {"critic.baseline": "none"})):
        Experiment(load_config(config, {**longer, **changes}), tmp_path / name).run()
        lines = [line for line in RunFolder(tmp_path / name).lines() if line.kind == "update"]
        told.append([line.metrics.get("critic/explained_variance") for line in lines][1:])
    assert all(abs(value) < 1e-6 for value in told[1])
    assert max(told[0]) > 0.05


@pytest.mark.parametrize("setting", [{"epochs": 2}, {"minibatch": 4}])
def test_values_that_are_read_in_each_minibatch_have_no_other_schedule(
    setting: dict[str, Any], model: str
) -> None:
    from colearn.config import resolve

    (name,) = setting
    with pytest.raises(ConfigError, match=rf"^critic\.{name}: .*frozen_targets: true"):
        resolve(load_config(settings(model, frozen=False, **setting)))
