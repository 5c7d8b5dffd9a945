"""Rollouts ahead of updates: the weights of each iteration, resuming, and what is refused."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import register
from vllm_cases import byte_tokenizer, qwen

from colearn.config import Config, load_config, resolve
from colearn.errors import ConfigError
from colearn.rollout.lockstep import grow_in_lockstep
from colearn.runs.record import open_run
from colearn.training.interruption import Interrupted
from colearn.training.loop import Experiment
from colearn.training.stale_rollouts import StaleRollouts
from colearn.training.update.updater import Updater


@pytest.fixture(autouse=True)
def _notes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that pays different texts differently, so that weights move."""
    register(monkeypatch, notes="tiny:Notes")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model")
    qwen().save_pretrained(path)
    byte_tokenizer().save_pretrained(path)
    return path


def config_of(folder: Path, staleness: int, *, lora: bool = False, **changed: Any) -> Config:
    model: dict[str, Any] = {"path": str(folder), "learning_rate": 1e-2}
    if lora:
        model["lora"] = {"rank": 4, "alpha": 16}
    return load_config(
        {
            "task": {"name": "notes", "horizon": 2},
            "algorithm": {
                "name": "magrpo",
                "rollout": {"k": 2},
                "loss": {"importance_cap": 2.0},
            },
            "models": {"*": model},
            "agents": {"*": {"chat": "plain", "sampling": {"max_tokens": 6}}},
            "train": {
                "episodes": 1,
                "environment_steps": 1000,
                "iterations": 6,
                "staleness": staleness,
            },
            "evaluation": {"episodes": 1, "every": 3},
            "run": {
                "generator": {"name": "transformers", "copy": True},
                "device": "cpu",
                "checkpoint_minutes": None,
            },
        },
        changed,
    )


def watched(experiment: Experiment) -> tuple[list[set[int]], list[float]]:
    """The versions of the actions that each update learns from, and the updates between."""
    versions: list[set[int]] = []
    lags: list[float] = []
    take = experiment.experience.take

    def watch(at: Any, *, pool: Any = None) -> Any:
        trees, counts = take(at, pool=pool)
        actions = [one for tree in trees for node in tree.nodes for one in node.actions.values()]
        versions.append({action.version for action in actions})
        lags.append(experiment.experience.metrics()["staleness"])
        return trees, counts

    experiment.experience.take = watch  # type: ignore[method-assign]
    return versions, lags


def weights_of(experiment: Experiment) -> dict[str, torch.Tensor]:
    return {
        f"{key}.{name}": tensor.clone()
        for key, learner in experiment.team.learners.items()
        for name, tensor in learner.weights().items()
    }


@pytest.mark.parametrize(
    ("staleness", "versions", "lags"),
    [(1, [0, 0, 1, 2, 3, 4], [0, 1, 1, 1, 1, 1]), (2, [0, 0, 0, 2, 2, 4], [0, 1, 2, 1, 2, 1])],
)
def test_a_block_of_iterations_has_the_weights_that_began_it(
    folder: Path, tmp_path: Path, staleness: int, versions: list[int], lags: list[int]
) -> None:
    experiment = Experiment(config_of(folder, staleness), tmp_path / "run")
    versions_seen, apart = watched(experiment)
    experiment.run()
    assert versions_seen == [{version} for version in versions]
    assert apart == lags


@pytest.mark.parametrize("staleness", [1, 2])
def test_every_iteration_plays_the_items_and_episodes_that_are_its_own(
    folder: Path, tmp_path: Path, staleness: int
) -> None:
    experiment = Experiment(config_of(folder, staleness), tmp_path / "run")
    take, played = experiment.experience.take, []

    def watch(at: Any, *, pool: Any = None) -> Any:
        trees, counts = take(at, pool=pool)
        assert [tree.item for tree in trees] == experiment.experience.draw(at)
        played.extend(tree.episode for tree in trees)
        return trees, counts

    experiment.experience.take = watch  # type: ignore[method-assign]
    experiment.run()
    assert played == [0, 1, 2, 3, 4, 5]


def cooling(folder: Path, staleness: int, begin: float) -> Config:
    """A run that learns nothing and cools."""
    anneal = {"start": 1.5, "begin": begin}
    return config_of(
        folder,
        staleness,
        **{
            "models.*.learning_rate": 1e-30,
            "agents.*.sampling": {"max_tokens": 6, "temperature": 0.3, "anneal": anneal},
        },
    )


@pytest.mark.parametrize("staleness", [1, 2])
def test_rollouts_ahead_have_the_temperature_of_their_own_iteration(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, staleness: int
) -> None:
    update, said = Updater.update, []

    def noted(one: Updater, trees: Any, *args: Any) -> Any:
        nodes = [node for tree in trees for node in tree.nodes]
        said.append([action.tokens for node in nodes for action in node.actions.values()])
        return update(one, trees, *args)

    monkeypatch.setattr(Updater, "update", noted)
    for lag in (0, staleness):
        Experiment(cooling(folder, lag, 0.5), tmp_path / str(lag)).run()
    assert len(said) == 12 and said[0] != said[1]
    assert said[:6] == said[6:]


@pytest.mark.parametrize("staleness", [1, 2])
def test_an_update_reads_stale_actions_at_the_temperature_that_sampled_them(
    folder: Path, tmp_path: Path, staleness: int
) -> None:
    Experiment(cooling(folder, staleness, 0.0), tmp_path / "run").run()
    lines = [line.metrics for line in open_run(tmp_path / "run").lines() if line.kind == "update"]
    gaps = [metrics[f"{name}/logprob_mismatch"] for metrics in lines for name in ("ada", "ben")]
    assert len(gaps) == 12 and max(gaps) < 1e-5


def test_trees_grow_in_a_thread_while_models_update(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []

    def noted(growths: Any, **named: Any) -> None:
        threads.append(threading.current_thread().name.partition("_")[0])
        grow_in_lockstep(growths, **named)

    monkeypatch.setattr("colearn.rollout.grow.grow_in_lockstep", noted)
    Experiment(config_of(folder, 1), tmp_path / "run").run()
    assert threads.count("rollout") >= 6, "iterations"
    assert threads.count("MainThread") == 3, "evaluations"


def test_an_update_within_a_block_waits_for_its_own_rollout_only(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = threading.Event()
    grow, update = StaleRollouts.grow, Updater.update

    def last_of_the_block_waits(one: StaleRollouts, at: Any, *args: Any, **named: Any) -> Any:
        if at.iteration == 2:
            assert began.wait(600), "the second update has not begun"
        return grow(one, at, *args, **named)

    def noted(one: Updater, trees: Any, iteration: int, *args: Any) -> Any:
        if iteration == 1:
            began.set()
        return update(one, trees, iteration, *args)

    monkeypatch.setattr(StaleRollouts, "grow", last_of_the_block_waits)
    monkeypatch.setattr(Updater, "update", noted)
    Experiment(config_of(folder, 2), tmp_path / "run").run()
    assert began.is_set()


@pytest.mark.parametrize("staleness", [0, 1])
def test_the_timeline_shows_rollouts_beside_updates(
    folder: Path, tmp_path: Path, staleness: int
) -> None:
    experiment = Experiment(config_of(folder, staleness), tmp_path / "run")
    experiment.run()
    lines = [line.metrics for line in open_run(tmp_path / "run").lines() if line.kind == "update"]
    for metrics in lines:
        whole = sum(metrics[f"seconds/{part}"] or 0.0 for part in ("rollout", "update"))
        for kind, name in (("update", "ada"), ("generate", "generator/ada")):
            parts = [metrics.get(f"seconds/{key}/{name}") or 0.0 for key in (kind, "transfer")]
            assert sum(parts) + (metrics[f"seconds/wait/{name}"] or 0.0) == pytest.approx(whole)
    models = ("ada", "ben")
    overlap = [
        (metrics["seconds/overlap"] or 0.0) > 0.0
        and sum(metrics[f"seconds/update/{name}"] or 0.0 for name in models) > 0.0
        for metrics in lines
    ]
    assert any(overlap) == bool(staleness)


def interrupted(config: Config, run: Path, stop: int) -> None:
    """Train for so many iterations, then save and leave."""

    def interrupt(progress: Any, metrics: Any) -> None:
        if progress.iteration == stop:
            raise Interrupted(signal.SIGTERM)

    with pytest.raises(Interrupted):
        Experiment(config, run).run(interrupt)


@pytest.mark.parametrize("lora", [False, True])
@pytest.mark.parametrize(
    "stop",
    [pytest.param(2, marks=pytest.mark.slow), 3],
    ids=["at new weights", "within a block"],
)
def test_an_interrupted_run_resumes_to_the_same_weights(
    folder: Path, tmp_path: Path, stop: int, lora: bool
) -> None:
    config = config_of(folder, 2, lora=lora)
    whole = Experiment(config, tmp_path / "whole")
    before, (versions, _) = weights_of(whole), watched(whole)
    whole.run()
    interrupted(config, tmp_path / "parts", stop)
    resumed = Experiment(config, tmp_path / "parts", resume=True)
    again, _ = watched(resumed)
    resumed.run()
    assert again == versions[stop:]
    expected = weights_of(whole)
    assert not any(torch.equal(before[key], tensor) for key, tensor in expected.items())
    assert all(torch.equal(expected[key], tensor) for key, tensor in weights_of(resumed).items())


def test_evaluations_do_not_change_what_is_learned(folder: Path, tmp_path: Path) -> None:
    often = Experiment(config_of(folder, 2, **{"evaluation.every": 1}), tmp_path / "often")
    seldom = Experiment(config_of(folder, 2, **{"evaluation.every": 6}), tmp_path / "seldom")
    often.run()
    seldom.run()
    expected = weights_of(seldom)
    assert all(torch.equal(expected[key], tensor) for key, tensor in weights_of(often).items())


@pytest.mark.parametrize(
    ("changed", "remedy"),
    [
        ({"algorithm.loss.importance_cap": None}, "algorithm.loss.importance_cap"),
        ({"run.generator": "transformers"}, "copy: true"),
        ({"cast": {"name": "league", "pool": 1}}, "a cast without a pool"),
    ],
)
def test_what_cannot_run_ahead_is_one_line(
    folder: Path, changed: dict[str, Any], remedy: str
) -> None:
    with pytest.raises(ConfigError, match=rf"^train\.staleness: .*{remedy}") as error:
        resolve(config_of(folder, 1, **changed))
    assert "\n" not in str(error.value)


def test_a_copy_says_what_the_live_model_says(folder: Path, tmp_path: Path) -> None:
    plain = Experiment(
        config_of(folder, 0, **{"run.generator": "transformers"}), tmp_path / "plain"
    )
    copied = Experiment(config_of(folder, 0), tmp_path / "copied")
    plain.run()
    copied.run()
    expected = weights_of(plain)
    assert all(torch.equal(expected[key], tensor) for key, tensor in weights_of(copied).items())
