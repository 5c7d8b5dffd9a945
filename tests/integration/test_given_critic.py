"""A critic from another run: it starts as it was, fits or is one line, and is frozen if asked."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tiny import register, save_model

from colearn.config import load_config
from colearn.contract import NetworkKey
from colearn.deploy.export import export_critics
from colearn.errors import ConfigError
from colearn.methods.values.critic_folder import read_critic
from colearn.methods.values.explained_variance import pairs
from colearn.models.network import HEAD
from colearn.runs.record import RunFolder, read_run
from colearn.runs.record.checksums import write_checksums
from colearn.training.load_team import load_team
from colearn.training.loop import Experiment

TEAM = NetworkKey("critic", "team")
DC = {"name": "collm_dc"}


@pytest.fixture(scope="module", autouse=True)
def _notes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLEARN_CACHE", str(tmp_path_factory.mktemp("cache")))
        register(patch, notes="tiny:Notes")
        yield


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_model(tmp_path_factory.mktemp("model"))


def settings(model: str, **changes: Any) -> dict[str, Any]:
    return {
        "task": {"name": "notes", "horizon": 2, "items": 3},
        "algorithm": {"name": "collm_cc", "value_loss": {"rescale": True}},
        "models": {"*": {"path": model, "learning_rate": 3e-2}},
        "agents": {"*": {"sampling": {"max_tokens": 6}}},
        "critic": {"path": model, "learning_rate": 3e-2, "baseline": "none"},
        "train": {"environment_steps": 8, "episodes": 2},
        "evaluation": {"episodes": 1, "every": 1000},
        "run": {"device": "cpu", "seed": 1},
    } | changes


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, model: str) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "first"
    Experiment(load_config(settings(model)), folder).run()
    return folder


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, run: Path) -> Path:
    return export_critics(run, tmp_path_factory.mktemp("kept"))["team"]


@pytest.fixture(scope="module")
def with_means(tmp_path_factory: pytest.TempPathFactory, model: str) -> tuple[Path, Path]:
    """A run with means by item, and its critic."""
    folder = tmp_path_factory.mktemp("with_means")
    critic = {"path": model, "learning_rate": 3e-2, "baseline": "item"}
    Experiment(load_config(settings(model, critic=critic)), folder / "run").run()
    return folder / "run", export_critics(folder / "run", folder / "kept")["team"]


@pytest.fixture(scope="module")
def by_agent(tmp_path_factory: pytest.TempPathFactory, model: str) -> dict[str, Path]:
    """The critics of a run of `collm_dc`."""
    folder = tmp_path_factory.mktemp("by_agent")
    Experiment(load_config(settings(model, algorithm=DC)), folder / "run").run()
    return export_critics(folder / "run", folder / "kept")


def given(model: str, kept: Path, **changes: Any) -> dict[str, Any]:
    critic = {"from": str(kept), "learning_rate": 3e-2} | changes.pop("critic", {})
    return settings(model, critic=critic, run={"device": "cpu", "seed": 2}, **changes)


def state(experiment: Experiment) -> dict[str, torch.Tensor]:
    network = experiment.team.networks[TEAM]
    return {name: one.detach().clone() for name, one in network.state().items()}


def test_a_run_starts_from_the_weights_and_the_head_that_were_kept(
    model: str, run: Path, kept: Path
) -> None:
    checkpoint = RunFolder(run).checkpoints.choose().path / "critic-team" / "weights.safetensors"
    network = load_team(load_config(given(model, kept))).networks[TEAM]
    expected = load_file(checkpoint)
    assert network.state().keys() == expected.keys()
    for name, tensor in network.state().items():
        assert torch.equal(tensor, expected[name]), name


def test_a_run_starts_from_the_means_by_item_of_its_critic_and_keeps_them_in_its_first_checkpoint(
    model: str, with_means: tuple[Path, Path], tmp_path: Path
) -> None:
    run, kept = with_means
    means = RunFolder(run).checkpoints.choose().progress.item_means
    config = load_config(given(model, kept))
    with Experiment(config, tmp_path / "next") as begun:
        begun.evaluate()
    resumed = Experiment(config, tmp_path / "next", resume=True)
    assert resumed.progress.iteration == 0
    assert begun.updater is not None and resumed.updater is not None
    assert begun.updater.item_baseline
    assert begun.updater.item_means.state == resumed.updater.item_means.state == means != {}


def test_critics_with_and_without_means_by_item_are_one_line(
    model: str, by_agent: dict[str, Path], tmp_path: Path
) -> None:
    for agent, folder in by_agent.items():
        shutil.copytree(folder, tmp_path / f"critic-{agent}")
    manifest = read_critic(tmp_path / "critic-ada", "ada")
    changed = manifest.model_copy(update={"item_means": {"ada\x1f0": (1.0, 1.0)}})
    changed.write(tmp_path / "critic-ada")
    config = given(model, tmp_path, algorithm=DC)
    with pytest.raises(ConfigError, match=r"^critic\.from: some critics of .* have means by item"):
        load_team(load_config(config))


@pytest.mark.parametrize("baseline", ["none", "item"])
def test_a_baseline_that_is_not_the_given_critic_s_is_one_line(
    baseline: str, model: str, kept: Path
) -> None:
    config = load_config(given(model, kept, critic={"baseline": baseline}))
    if baseline == "none":  # what the given critic has
        assert not load_team(config).run.config.critic.item_baseline
        return
    with pytest.raises(ConfigError, match=r"^critic\.baseline: is item, .* has none; set it to nu"):
        load_team(config)


def test_each_agent_is_given_the_critic_of_its_name(model: str, by_agent: dict[str, Path]) -> None:
    config = given(model, by_agent["ada"].parent, algorithm=DC)
    networks = load_team(load_config(config)).networks
    for agent, folder in by_agent.items():
        head = networks[NetworkKey("critic", agent)].head
        assert torch.equal(head.linear.weight, load_file(folder / HEAD)["linear.weight"])


def test_a_frozen_critic_keeps_its_weights_and_is_centred_on_the_first_returns(
    model: str, kept: Path, tmp_path: Path
) -> None:
    experiment = Experiment(
        load_config(given(model, kept, critic={"frozen": 1.0})), tmp_path / "run"
    )
    before, trees = state(experiment), experiment.trees()
    parts, updater = experiment.team.run.parts, experiment.updater
    assert updater is not None and updater.critic is not None
    told = list(pairs(parts.credited(trees), updater.critic.values(trees), of_state=True))
    by = sum(pair.actual - pair.value for pair in told) / len(told)
    assert abs(by) > 1e-3
    record = experiment.run()
    after = state(experiment)
    centre = after.pop("head.scale") - before.pop("head.scale")
    assert centre.tolist() == pytest.approx([by, 0.0, 0.0], abs=1e-6)
    assert all(torch.equal(one, after[name]) for name, one in before.items())
    assert record.critic_joint_actions == read_critic(kept, "kept").joint_actions == 8
    updates = read_run(RunFolder(tmp_path / "run")).updates
    assert all("critic/value_loss" not in line.metrics for line in updates)
    assert all("ada/grad_norm" in line.metrics for line in updates)


def test_a_critic_that_is_frozen_for_a_share_is_trained_after_it_and_worth_both_budgets(
    model: str, kept: Path, tmp_path: Path
) -> None:
    config = given(model, kept, critic={"frozen": 0.5})
    Experiment(load_config(config), tmp_path / "run").run()
    updates = read_run(RunFolder(tmp_path / "run")).updates
    assert ["critic/value_loss" in line.metrics for line in updates] == [False, True]
    folder = export_critics(tmp_path / "run", tmp_path / "out")["team"]
    assert read_critic(folder, "kept").joint_actions == 16


MISFITS = {
    "another kind of value": (
        {"algorithm": {"name": "coma"}},
        r"trained with the critic centralized, and this run has counterfactual; .*critic fit",
    ),
    "other text": (
        {"algorithm": {"name": "collm_cc", "critic": {"global_info": False}}},
        r"the critic's settings .*global_info True.*and this run has .*global_info False",
    ),
    "another discount": (
        {"algorithm": {"name": "collm_cc", "discount": 0.9}},
        r"trained with the discount 1\.0, and this run has 0\.9",
    ),
    "another horizon": (
        {"task": {"name": "notes", "horizon": 3, "items": 3}},
        r"with a horizon of 2, and this run has 3; .*critic\.foreign: true",
    ),
}


@pytest.mark.parametrize("name", MISFITS)
def test_a_critic_that_does_not_fit_is_one_line(name: str, model: str, kept: Path) -> None:
    changes, told = MISFITS[name]
    with pytest.raises(ConfigError, match=told) as error:
        load_team(load_config(given(model, kept, **changes)))
    assert str(error.value).startswith("critic.from: ") and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("task", "letters", "trained with the task letters, and this run has notes"),
        ("agents", ["eve", "bob"], r"trained with the agents eve\+bob, and this run has ada\+ben"),
    ],
)
def test_a_critic_of_another_task_or_team_is_one_line_or_foreign(
    field: str, value: Any, told: str, model: str, kept: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(kept, tmp_path / "copy")
    manifest = json.loads((copy / "critic.json").read_text())
    (copy / "critic.json").write_text(json.dumps(manifest | {field: value}))
    write_checksums(copy)
    with pytest.raises(ConfigError, match=told):
        load_team(load_config(given(model, copy)))
    load_team(load_config(given(model, copy, critic={"foreign": True})))


@pytest.mark.parametrize("name", ["model.safetensors", "critic.json"])
def test_a_damaged_critic_is_one_line(name: str, model: str, kept: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(kept, tmp_path / "copy")
    (copy / name).write_bytes((copy / name).read_bytes()[:-8])
    with pytest.raises(ConfigError, match=rf"^critic\.from: .*{name}"):
        load_team(load_config(given(model, copy)))


def test_a_place_without_a_critic_is_one_line(model: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^critic\.from: no critic in .*no critic\.json"):
        load_team(load_config(given(model, tmp_path)))


def test_frozen_needs_a_critic_from_elsewhere(model: str) -> None:
    with pytest.raises(ConfigError, match="critic: frozen and foreign describe a given critic"):
        load_config(settings(model, critic={"path": model, "frozen": 1.0}))
    with pytest.raises(ConfigError, match="critic: set either path or share: actor, or from"):
        load_config(settings(model, critic={"share": "actor", "from": model}))


def test_a_given_critic_replaces_the_path(model: str, kept: Path) -> None:
    config = load_config(given(model, kept), {"critic.path": "nowhere/to-be-found"})
    head = load_team(config).networks[TEAM].head
    assert torch.equal(head.linear.weight, load_file(kept / HEAD)["linear.weight"])
