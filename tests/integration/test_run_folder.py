"""What a run leaves on disk, and that it is what really happened."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import *  # noqa: F403 - a fixture
from commands import Command
from tiny import register, save_model

from colearn.config import load_config
from colearn.runs.record import RunFolder, read_run
from colearn.training.loop import Experiment

EVERY_RUN = (
    *("status", "algorithm", "task", "seed", "agents", "models", "parameters", "version"),
    *("started", "wall_seconds", "peak_memory_bytes", "iterations", "environment_steps"),
    *("joint_actions", "generated_tokens", "updates", "rollouts", "optimum", "first", "last"),
)
"""What colearn/runs/comparison reads from run.json."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_model(tmp_path_factory.mktemp("model"))


def settings(model: str, steps: int = 8, **run: Any) -> dict[str, Any]:
    return {
        "task": {"name": "notes", "horizon": 2, "items": 3},
        "models": {"*": {"path": model, "learning_rate": 1e-3}},
        "agents": {"*": {"sampling": {"max_tokens": 4}}},
        "critic": {"path": model, "learning_rate": 1e-3},
        "train": {"environment_steps": steps, "episodes": 2},
        "evaluation": {"every": 1, "repeats": 2},
        "run": {"device": "cpu", **run},
    }


def train(folder: Path, model: str, **run: Any) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        register(patch, notes="tiny:Notes")
        return Experiment(load_config(settings(model, **run)), folder).run()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, model: str) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "one"
    train(folder, model)
    return folder


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_run_leaves_these_files_and_no_others(run: Path) -> None:
    names = {path.name for path in run.iterdir() if path.name != ".lock"}
    assert names == {
        "config.yaml",
        "run.json",
        "metrics.jsonl",
        "episodes.jsonl",
        "critic.jsonl",
        "checkpoints",
    }


def test_run_json_holds_what_a_comparison_reads(run: Path) -> None:
    assert set(EVERY_RUN) <= set(json.loads((run / "run.json").read_text()))


def test_the_comparison_reads_the_run(run: Path) -> None:
    run_data = read_run(RunFolder(run))
    assert [e.environment_steps for e in run_data.evaluations] == [0, 4, 8]


def test_the_config_on_disk_gives_the_same_run_again(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(monkeypatch, notes="tiny:Notes")
    Experiment(load_config(run / "config.yaml"), tmp_path / "again").run()
    assert results(tmp_path / "again") == results(run)


def test_each_evaluation_and_update_is_one_line(run: Path) -> None:
    kinds = [(line["kind"], line["iteration"]) for line in lines(run / "metrics.jsonl")]
    assert kinds == [
        *(("evaluation", 0), ("update", 1), ("evaluation", 1), ("update", 2), ("evaluation", 2)),
    ]


def test_episodes_hold_every_turn_in_full(run: Path) -> None:
    episodes = lines(run / "episodes.jsonl")
    assert len(episodes) == 3 * 2
    for episode in episodes:
        assert len(episode["turns"]) == 2
        assert set(episode["turns"][0]["actions"]) == {"ada", "ben"}


def test_checkpoints_hold_safetensors_and_json_only(run: Path) -> None:
    files = [path for path in (run / "checkpoints").rglob("*") if path.is_file()]
    assert {path.suffix or path.name for path in files} == {".safetensors", ".json", "SHA256SUMS"}
    folders = {path.parent.name for path in files if path.suffix == ".safetensors"}
    assert {"actor-ada", "actor-ben"} < folders and len(folders) == 3


def test_evaluate_reproduces_the_last_evaluation_exactly(run: Path, colearn: Command) -> None:
    told = json.loads(colearn("evaluate", run).out)
    last = json.loads((run / "run.json").read_text())["last"]
    assert {k: told[k] for k in ("return", "letters")} == {
        k: last[k] for k in ("return", "letters")
    }


@pytest.mark.slow
def test_steps_in_worker_processes_give_the_same_run(run: Path, tmp_path: Path, model: str) -> None:
    train(tmp_path / "pooled", model, step_workers=2)
    assert results(tmp_path / "pooled") == results(run)


def shown(text: str) -> str:
    """A tracker gets `\N{REPLACEMENT CHARACTER}` for every control character."""
    return "".join("\ufffd" if ord(sign) < 32 and sign not in "\t\n" else sign for sign in text)


def test_wandb_writes_an_offline_run(
    tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wandb = pytest.importorskip("wandb", reason="needs the wandb extra")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    wandb.teardown()  # wandb reads the environment once in a process
    train(tmp_path / "run", model, steps=4, trackers=["wandb"])
    (record,) = (tmp_path / "run" / "wandb").glob("offline-run-*/run-*.wandb")
    assert record.stat().st_size > 0
    tables = (tmp_path / "run" / "wandb").glob("offline-run-*/files/media/table/*.table.json")
    rows = [row for path in tables for row in _rows_of(path)]
    told = [
        (
            line["iteration"],
            line["item"],
            number,
            agent,
            shown(turn["actions"][agent]),
            turn["reward"],
        )
        for line in map(json.loads, (tmp_path / "run" / "episodes.jsonl").open())
        for number, turn in enumerate(line["turns"])
        for agent in turn["observations"]
    ]
    names = ("iteration", "item", "turn", "agent", "action", "reward")
    assert sorted(tuple(row[name] for name in names) for row in rows) == sorted(told)


def _rows_of(path: Path) -> list[dict[str, Any]]:
    table = json.loads(path.read_text())
    return [dict(zip(table["columns"], row, strict=True)) for row in table["data"]]


def results(run: Path) -> list[Any]:
    """All that a run measured, without what a clock gave."""
    return [
        [
            {key: value for key, value in (line | line["metrics"]).items() if _counted(key)}
            for line in lines(run / "metrics.jsonl")
        ],
        lines(run / "episodes.jsonl"),
    ]


def _counted(key: str) -> bool:
    return key != "metrics" and "seconds" not in key
