"""Rollouts ahead of updates: the weights of each iteration, resuming, and what is refused."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
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


@pytest.fixture(scope="module", autouse=True)
def _notes() -> Iterator[None]:
    """A task that pays different texts differently, so that weights move."""
    with pytest.MonkeyPatch.context() as patch:
        register(patch, notes="tiny:Notes")
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model")
    qwen().save_pretrained(path)
    byte_tokenizer().save_pretrained(path)
    return path


def config_of(folder: Path, staleness: int, **changed: Any) -> Config:
    return load_config(
        {
            "task": {"name": "notes", "horizon": 2},
            "algorithm": {
                "name": "magrpo",
                "rollout": {"k": 2},
                "loss": {"importance_cap": 2.0},
            },
            "models": {"*": {"path": str(folder), "learning_rate": 1e-2}},
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


@dataclass
class Taken:
    """What the updates of a run learned from, by iteration."""

    versions: list[set[int | None]] = field(default_factory=list)
    """Versions of the weights that sampled the actions."""
    lags: list[float] = field(default_factory=list)
    """Updates between those weights and the newest."""
    items: list[tuple[list[Any], list[Any]]] = field(default_factory=list)
    """Those of the trees, and those that are drawn for the iteration."""
    episodes: list[int] = field(default_factory=list)


def watched(experiment: Experiment) -> Taken:
    taken, take = Taken(), experiment.experience.take

    def watch(at: Any, *, pool: Any = None) -> Any:
        trees, counts = take(at, pool=pool)
        actions = [one for tree in trees for node in tree.nodes for one in node.actions.values()]
        taken.versions.append({action.version for action in actions})
        taken.lags.append(experiment.experience.metrics()["staleness"])
        taken.items.append(([tree.item for tree in trees], experiment.experience.draw(at)))
        taken.episodes.extend(tree.episode for tree in trees)
        return trees, counts

    experiment.experience.take = watch  # type: ignore[method-assign]
    return taken


def weights_of(experiment: Experiment) -> dict[str, torch.Tensor]:
    return {
        f"{key}.{name}": tensor.clone()
        for key, learner in experiment.team.learners.items()
        for name, tensor in learner.weights().items()
    }


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(
        torch.equal(tensor, other[name]) for name, tensor in one.items()
    )


@dataclass
class Whole:
    """An uninterrupted run with staleness 2."""

    run: Path
    taken: Taken
    threads: list[str]
    """Those in which episodes grew."""
    evaluated: list[tuple[int, int | None]]
    """(iteration of an evaluation, version of the weights that played it)"""
    weights: dict[str, torch.Tensor]


@pytest.fixture(scope="module")
def whole(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    threads = []

    def noted(growths: Any, **named: Any) -> None:
        threads.append(threading.current_thread().name.partition("_")[0])
        grow_in_lockstep(growths, **named)

    run = tmp_path_factory.mktemp("whole") / "run"
    experiment = Experiment(config_of(folder, 2), run)
    before, taken = weights_of(experiment), watched(experiment)
    evaluated: list[tuple[int, int | None]] = []

    def report(progress: Any, metrics: Any) -> None:
        if "evaluation/return" in metrics:
            engine = experiment.team.engines[0]
            evaluated.append((progress.iteration, engine.version("ada")))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("colearn.rollout.grow.grow_in_lockstep", noted)
        experiment.run(report)
    after = weights_of(experiment)
    assert not any(torch.equal(before[key], tensor) for key, tensor in after.items())
    return Whole(run, taken, threads, evaluated, after)


def test_a_block_of_iterations_has_the_weights_that_began_it(whole: Whole) -> None:
    assert whole.taken.versions == [{0}, {0}, {0}, {2}, {2}, {4}]
    assert whole.taken.lags == [0, 1, 2, 1, 2, 1]


def test_every_iteration_plays_the_items_and_episodes_that_are_its_own(whole: Whole) -> None:
    assert all(items == drawn for items, drawn in whole.taken.items)
    assert whole.taken.episodes == [0, 1, 2, 3, 4, 5]


def test_trees_grow_in_a_thread_while_models_update(whole: Whole) -> None:
    assert whole.threads.count("rollout") >= 6, "iterations"
    assert whole.threads.count("MainThread") == 3, "evaluations"


def test_an_evaluation_plays_the_newest_weights(whole: Whole) -> None:
    assert whole.evaluated == [(0, 0), (3, 3), (6, 6)]


def test_an_update_reads_stale_actions_at_the_temperature_that_sampled_them(
    folder: Path, tmp_path: Path
) -> None:
    """A run that learns nothing and cools."""
    anneal = {"start": 1.5, "begin": 0.0}
    cooling = {
        "models.*.learning_rate": 1e-30,
        "agents.*.sampling": {"max_tokens": 6, "temperature": 0.3, "anneal": anneal},
        "train.iterations": 4,
    }
    Experiment(config_of(folder, 2, **cooling), tmp_path / "run").run()
    lines = [line.metrics for line in open_run(tmp_path / "run").lines() if line.kind == "update"]
    gaps = [metrics[f"{name}/logprob_mismatch"] for metrics in lines for name in ("ada", "ben")]
    assert len(gaps) == 8 and max(gap for gap in gaps if gap is not None) < 1e-5


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
    Experiment(config_of(folder, 2, **{"train.iterations": 3}), tmp_path / "run").run()
    assert began.is_set()


def test_the_timeline_shows_rollouts_beside_updates(whole: Whole) -> None:
    lines = [line.metrics for line in open_run(whole.run).lines() if line.kind == "update"]
    for metrics in lines:
        iteration = sum(metrics[f"seconds/{part}"] or 0.0 for part in ("rollout", "update"))
        for kind, name in (("update", "ada"), ("generate", "generator/ada")):
            parts = [metrics.get(f"seconds/{key}/{name}") or 0.0 for key in (kind, "transfer")]
            assert sum(parts) + (metrics[f"seconds/wait/{name}"] or 0.0) == pytest.approx(iteration)
    assert any(
        (metrics["seconds/overlap"] or 0.0) > 0.0
        and sum(metrics[f"seconds/update/{name}"] or 0.0 for name in ("ada", "ben")) > 0.0
        for metrics in lines
    )


def test_a_run_that_is_interrupted_within_a_block_resumes_to_the_same_weights(
    whole: Whole, folder: Path, tmp_path: Path
) -> None:
    def interrupt(progress: Any, metrics: Any) -> None:
        if progress.iteration == 3:
            raise Interrupted(signal.SIGTERM)

    config = config_of(folder, 2)
    with pytest.raises(Interrupted):
        Experiment(config, tmp_path / "parts").run(interrupt)
    resumed = Experiment(config, tmp_path / "parts", resume=True)
    again = watched(resumed)
    resumed.run()
    assert again.versions == whole.taken.versions[3:]
    assert same(weights_of(resumed), whole.weights)


def test_evaluations_do_not_change_what_is_learned(
    whole: Whole, folder: Path, tmp_path: Path
) -> None:
    often = Experiment(config_of(folder, 2, **{"evaluation.every": 1}), tmp_path / "often")
    often.run()
    assert same(weights_of(often), whole.weights)


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
    learned = []
    for generator in ("transformers", {"name": "transformers", "copy": True}):
        changed = {"run.generator": generator, "train.iterations": 2}
        experiment = Experiment(config_of(folder, 0, **changed), tmp_path / str(len(learned)))
        experiment.run()
        learned.append(weights_of(experiment))
    assert same(*learned)
