"""A critic's own epochs and minibatches, and its means by item, in runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from tiny import register, save_model

from colearn.config import CriticSettings, load_config, resolve
from colearn.contract import NetworkKey
from colearn.errors import ConfigError
from colearn.methods.values.item_means import ItemMeans
from colearn.runs.record import RunFolder
from colearn.training.learners.ridge import ridge
from colearn.training.loop import Experiment

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
        "evaluation": {"episodes": 1, "every": 1000},
        "run": {"device": "cpu"},
    }


def test_by_default_an_item_s_mean_is_part_of_the_value(model: str, tmp_path: Path) -> None:
    """A network that learns nothing: what is explained is what means by item explain."""
    config = settings(model, learning_rate=1e-12)
    longer = {"train.environment_steps": 40, "models.*.learning_rate": 1e-12}
    told = []
    for name, changes in (("item", {}), ("none", {"critic.baseline": "none"})):
        Experiment(load_config(config, {**longer, **changes}), tmp_path / name).run()
        lines = [line for line in RunFolder(tmp_path / name).lines() if line.kind == "update"]
        told.append([line.metrics["critic/explained_variance"] for line in lines][1:])
    assert all(abs(value) < 1e-6 for value in told[1])
    assert max(told[0]) > 0.05
    recorded = yaml.safe_load((tmp_path / "item" / "config.yaml").read_text())
    assert recorded["critic"]["baseline"] == "item"


@pytest.mark.parametrize("setting", [{"epochs": 2}, {"minibatch": 4}, {"head": "ridge"}])
def test_values_that_are_read_in_each_minibatch_have_no_other_schedule(
    setting: dict[str, Any], model: str
) -> None:
    (name,) = setting
    with pytest.raises(ConfigError, match=rf"^critic\.{name}: .*frozen_targets: true"):
        resolve(load_config(settings(model, frozen=False, **setting)))


@pytest.mark.parametrize("baseline", ["none", "item"])
def test_a_solved_head_is_the_regression_of_the_returns_on_the_trunk_s_states(
    baseline: str, model: str, tmp_path: Path
) -> None:
    """One update: the head's values after it are those of a ridge regression of what the means by
    item leave of its own returns."""
    own = settings(model, head="ridge", baseline=baseline)
    config = load_config(own, {"train.environment_steps": 8})
    experiment = Experiment(config, tmp_path / "run")
    trees, updater = experiment.trees(), experiment.updater
    assert updater is not None and updater.critic is not None
    network = experiment.team.networks[TEAM]
    trunk = {k: v.clone() for k, v in network.state().items() if not k.startswith("head.")}
    states: list[torch.Tensor] = []
    hook = network.head.register_forward_pre_hook(lambda _, given: states.append(given[0]))
    for tree in trees:
        updater.critic.values([tree])  # one row each, its marks in the order of the turns
    hook.remove()
    experiment.run()
    assert all(torch.equal(tensor, network.state()[name]) for name, tensor in trunk.items())
    read = torch.cat(states)
    returns = torch.tensor([tree.returns(1.0)[1:] for tree in trees]).flatten()
    if baseline == "item":
        parts = experiment.team.run.parts
        means = ItemMeans().offsets(updater.critic.critic, parts.credited(trees))
        returns -= torch.tensor([one["ada"][turn] for one in means for turn in (0, 1)])
    values = network.head(read)
    weights, bias = ridge(read.double(), returns.double())
    assert values.tolist() == pytest.approx((read.double() @ weights + bias).tolist(), abs=1e-5)


def test_a_solved_head_goes_on_with_the_experience_that_it_has_kept(
    model: str, tmp_path: Path
) -> None:
    config = settings(model, head="ridge", replay=2, baseline="none")
    weights = []
    for name, steps in (("whole", [16]), ("parts", [8, 16])):
        for number, budget in enumerate(steps):
            changed = load_config(config, {"train.environment_steps": budget})
            experiment = Experiment(changed, tmp_path / name, resume=number > 0)
            experiment.run()
        weights.append(experiment.team.networks[TEAM].head.linear.weight)
    assert weights[0].any() and torch.equal(*weights)


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ({"head": "ridge", "epochs": 2}, "leave epochs"),
        ({"replay": 2}, "set head: ridge"),
        (
            {"head": "ridge", "path": None, "share": "actor", "learning_rate": 3e-6},
            "head needs a critic of its own",
        ),
    ],
)
def test_settings_that_a_solved_head_has_not_are_one_line(
    setting: dict[str, Any], told: str, model: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        load_config(settings(model, **setting))


@pytest.mark.parametrize("setting", [{"clip": 0.2}, {"expectile": 0.9}])
def test_a_solved_head_has_no_loss_whose_settings_it_would_ignore(
    setting: dict[str, float], model: str
) -> None:
    config = settings(model, head="ridge")
    config["algorithm"]["value_loss"] |= setting
    (name,) = setting
    with pytest.raises(ConfigError, match=rf"^algorithm\.value_loss\.{name}: .* set critic.head"):
        resolve(load_config(config))


@pytest.mark.parametrize(
    "setting",
    [{"learning_rate": 1e-2}, {"lora": {}}, {"epochs": 2}, {"warmup_iterations": 2}],
)
def test_heads_on_the_actors_have_the_settings_of_the_models(setting: dict[str, Any]) -> None:
    (name,) = setting
    with pytest.raises(ValueError, match=f"{name} needs a critic of its own; set path"):
        CriticSettings(share="actor", **setting)
