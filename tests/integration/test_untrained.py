"""`untrained`: a run that is one evaluation of the models as they are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tiny import register, save_model

from colearn.config import load_config
from colearn.runs.record import RunFolder, read_run
from colearn.training.evaluation.random_play import untrained_play_line
from colearn.training.load_team import load_team
from colearn.training.loop import Experiment
from colearn.training.update.build_updater import build_updater


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module", autouse=True)
def notes() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        register(patch, notes="tiny:Notes")
        yield


@pytest.fixture(scope="module")
def run(model: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    Experiment(load_config(settings(model)), folder).run()
    return folder


def settings(model: str, algorithm: str = "untrained", **other: Any) -> dict[str, Any]:
    return {
        "task": {"name": "notes", "horizon": 2, "items": 3},
        "algorithm": {"name": algorithm},
        "models": {"*": {"path": model}},
        "agents": {"*": {"sampling": {"max_tokens": 4}}},
        "critic": {"path": "no/such/folder"} if algorithm == "untrained" else {"path": model},
        "train": {"environment_steps": 4, "episodes": 2},
        "run": {"device": "cpu"},
        **other,
    }


def lines(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def test_it_evaluates_once_and_finishes_without_a_step(model: str, run: Path) -> None:
    Experiment(load_config(settings(model)), run, resume=True).run()  # nothing is left to do
    record = json.loads((run / "run.json").read_text())
    assert [line["kind"] for line in lines(run, "metrics.jsonl")] == ["evaluation"]
    assert (record["status"], record["environment_steps"], record["updates"]) == ("finished", 0, 0)
    assert record["first"] == record["last"] != {}
    assert record["parameters"] == {}


def test_colearn_check_prints_the_mean_of_its_evaluation(model: str, run: Path) -> None:
    config = load_config(settings(model))
    mean = json.loads((run / "run.json").read_text())["first"]["return"]
    assert untrained_play_line(config).startswith(f"untrained play: return {mean:.3f} on average, ")


def test_no_model_is_trained_and_no_critic_loaded(model: str) -> None:
    parts = load_team(load_config(settings(model)))
    assert (build_updater(parts), parts.learners) == (None, {})
    networks = parts.networks.values()
    assert len(networks) == 2
    assert not any(p.requires_grad for n in networks for p in n.base.causal.parameters())


def test_adapters_are_left_out(model: str) -> None:
    models = {"*": {"path": model, "lora": {"rank": 2}}}
    parts = load_team(load_config(settings(model, models=models)))
    assert {network.adapter for network in parts.networks.values()} == {None}


def test_it_plays_as_a_trained_run_plays_before_training(
    model: str, run: Path, tmp_path: Path
) -> None:
    with Experiment(load_config(settings(model, "collm_cc")), tmp_path) as trains:
        expected = trains.evaluate()
    metrics = lines(run, "metrics.jsonl")[0]["metrics"]
    del expected["response_seconds"], metrics["response_seconds"]
    assert metrics == expected


def test_a_comparison_reads_it(run: Path) -> None:
    read = read_run(RunFolder(run))
    assert (read.algorithm, len(read.evaluations)) == ("untrained", 1)


@pytest.mark.parametrize("wrapper", ["pipeline", "single"])
def test_it_plays_by_every_protocol(model: str, tmp_path: Path, wrapper: str) -> None:
    result = Experiment(load_config(settings(model, wrapper=wrapper)), tmp_path).run()
    assert result.last["turns"] == (4.0 if wrapper == "pipeline" else 2.0)
