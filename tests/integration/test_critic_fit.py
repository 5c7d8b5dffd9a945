"""A critic trained alone on recorded runs: of another algorithm, written for `critic.from`."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tiny import register, save_model

import colearn
from colearn.config import load_config
from colearn.deploy.export import write_fit
from colearn.entry.cli import main
from colearn.errors import ConfigError
from colearn.methods.values.critic_folder import read_critic
from colearn.models.network import HEAD
from colearn.runs.record import RunFolder
from colearn.runs.record.recorded_tree import tree_of
from colearn.training.critic_fit import FitSettings, fit_config, fit_critic
from colearn.training.loop import Experiment

LORA = {"rank": 4, "alpha": 32.0}


@pytest.fixture(scope="module", autouse=True)
def _notes() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        register(patch, notes="tiny:Notes")
        yield


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_model(tmp_path_factory.mktemp("model"))


def settings(model: str, **changes: Any) -> dict[str, Any]:
    return {
        "task": {"name": "notes", "horizon": 2, "items": 3},
        "algorithm": {"name": "magrpo", "rollout": {"k": 2}},
        "models": {"*": {"path": model, "learning_rate": 3e-2, "lora": LORA}},
        "agents": {"*": {"sampling": {"max_tokens": 6}}},
        "train": {"environment_steps": 60, "episodes": 2, "record": True},
        "evaluation": {"episodes": 1, "every": 1000},
        "run": {"device": "cpu"},
    } | changes


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, model: str) -> Path:
    """Trees of 2 + 4 joint actions, without a critic."""
    folder = tmp_path_factory.mktemp("runs") / "magrpo"
    Experiment(load_config(settings(model)), folder).run()
    return folder


def test_a_run_records_what_its_trees_have_taught(run: Path) -> None:
    recorded = list(RunFolder(run).trees())
    assert [one.iteration for one in recorded] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    for one in recorded:
        tree = tree_of(one)
        assert [len(node.path) for node in tree.nodes] == [0, 1, 1, 2, 2, 2, 2]
        assert [node.terminal for node in tree.nodes] == [False] * 3 + [True] * 4
        assert all(set(node.actions) == {"ada", "ben"} for node in tree.nodes[1:])


def test_a_recorded_tree_has_the_texts_and_the_returns_of_the_tree(
    run: Path, model: str, tmp_path: Path
) -> None:
    expected = Experiment(load_config(settings(model)), tmp_path / "run").trees()
    first = [tree_of(one) for one in RunFolder(run).trees()][: len(expected)]
    for mine, theirs in zip(first, expected, strict=True):
        assert mine.returns(0.9) == theirs.returns(0.9)
        for one, other in zip(mine.nodes, theirs.nodes, strict=True):
            assert one.path == other.path and one.global_info == other.global_info
            assert {a: x.text for a, x in one.actions.items()} == {
                a: x.text for a, x in other.actions.items()
            }
            assert {a: x.text for a, x in one.observations.items()} == {
                a: x.text for a, x in other.observations.items()
            }


def test_trees_and_critic_lines_after_the_checkpoint_are_dropped_at_a_resume(
    model: str, tmp_path: Path
) -> None:
    config = settings(model, algorithm={"name": "collm_cc"}, critic={"path": model})
    Experiment(load_config(config, {"train.environment_steps": 4}), tmp_path / "run").run()
    for name in ("trees.jsonl", "critic.jsonl"):
        path = tmp_path / "run" / name
        later = path.read_text().splitlines()[-1].replace('"iteration": 1', '"iteration": 2')
        path.write_text(f"{path.read_text()}{later}\n")
    longer = load_config(config, {"train.environment_steps": 8})
    Experiment(longer, tmp_path / "run", resume=True).run()
    run = RunFolder(tmp_path / "run")
    assert [one.iteration for one in run.trees()] == [1, 1, 2, 2]
    assert [line.iteration for line in run.critic_lines()] == [1, 2]


def test_a_critic_learns_from_the_episodes_of_an_algorithm_without_one(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "fitted"
    words = ["critic", "fit", str(run), "--algorithm", "collm_cc", "--out", str(out)]
    words += ["--set", "critic.learning_rate=1e-2", "--epochs", "2", "--minibatch", "12"]
    monkeypatch.setattr(sys, "argv", ["colearn", *words, "--held-out", "0.3"])
    with pytest.raises(SystemExit) as stop:
        main()
    told = capsys.readouterr().out
    assert not stop.value.code
    assert "epoch 2: explains turn 0: " in told and "means by item and turn: explains" in told
    assert "7 episodes, 60 joint actions; held out: 3 episodes" in told
    assert "can be explained (10 histories with several joint actions)" in told
    critic = colearn.load_critic(out, device="cpu")
    assert critic.manifest.joint_actions == 60 and critic.manifest.critic == "centralized"
    given = settings("", algorithm={"name": "collm_cc"})
    given["models"] = RunFolder(run).settings()["models"]
    given["train"] = {"environment_steps": 4, "episodes": 2}
    given["critic"] = {"from": str(out), "frozen": 1.0}
    record = Experiment(load_config(given), tmp_path / "next").run()
    assert record.critic_joint_actions == 60


def test_a_fit_comes_nearer_to_the_returns_that_it_is_trained_on(run: Path) -> None:
    folders = [RunFolder(run)]
    sets = ["critic.learning_rate=1e-2", "critic.head_learning_rate=0.1"]
    config = fit_config(folders, algorithm="coma", overrides=sets)
    told: list[float] = []

    def report(epoch: int, worth: Any) -> None:
        told.append(sum(one.r2 or 0.0 for one in worth))

    fitted = fit_critic([run], config, FitSettings(epochs=1, held_out=0.5), report)
    longer = fit_critic([run], config, FitSettings(epochs=8, minibatch=8, held_out=0.5), report)
    assert fitted.run.parts.critic is not None and fitted.run.parts.critic.value == "counterfactual"
    assert told[-1] > told[0]
    assert longer.ceilings == ()  # of single joint actions there is no second return


def test_a_run_that_recorded_nothing_is_one_line(run: Path, tmp_path: Path) -> None:
    plain = shutil.copytree(run, tmp_path / "run")
    (plain / "trees.jsonl").unlink()
    with pytest.raises(ConfigError, match=r"no trees\.jsonl; .*train\.record: true"):
        fit_critic([plain], fit_config([RunFolder(plain)], algorithm="coma"))


def test_an_algorithm_without_a_critic_is_one_line(run: Path) -> None:
    with pytest.raises(ConfigError, match=r"magrpo trains no critic of its own; .*--algorithm"):
        fit_critic([run])


def test_means_by_item_that_a_fit_would_not_have_are_one_line(run: Path) -> None:
    config = fit_config([RunFolder(run)], algorithm="collm_cc", overrides=["critic.baseline=item"])
    with pytest.raises(ConfigError, match=r"^critic\.baseline: a fitted critic has no means by it"):
        fit_critic([run], config)


def test_a_fit_on_another_base_than_the_agents_goes_on_from_a_critic_and_counts_its_joint_actions(
    run: Path, tmp_path: Path
) -> None:
    base = f"critic.path={save_model(tmp_path / 'base', seed=5)}"
    config = fit_config([RunFolder(run)], algorithm="collm_cc", overrides=[base])
    settings = FitSettings(epochs=1, held_out=0.3)
    (first,) = write_fit(fit_critic([run], config, settings), tmp_path / "first").values()
    begun = ["critic.path=null", f"critic.from={first}", "critic.learning_rate=1e-12"]
    begun += ["critic.head_learning_rate=1e-12"]
    config = fit_config([RunFolder(run)], algorithm="collm_cc", overrides=begun)
    (second,) = write_fit(fit_critic([run], config, settings), tmp_path / "second").values()
    one, other = (load_file(folder / HEAD)["linear.weight"] for folder in (first, second))
    assert one.any() and torch.allclose(one, other, atol=1e-6)
    assert [read_critic(folder, "kept").joint_actions for folder in (first, second)] == [60, 120]
