"""Runs that stand in one folder without a comparison's plan: repeats, or one line."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from colearn.errors import CheckpointError
from colearn.runs.report.source import read_source
from tests.helpers.fabricated_runs import write_run


def written(folder: Path, name: str, algorithm: str, seed: int, **changed: object) -> Path:
    """A finished run in `folder`; `changed` has dotted settings of its config."""
    run = folder / "runs" / name
    write_run(run, algorithm, seed)
    config = yaml.safe_load((run / "config.yaml").read_text())
    for key, value in changed.items():
        section, _, setting = key.partition("__")
        config[section][setting] = value
    (run / "config.yaml").write_text(yaml.safe_dump(config))
    return run


def refusal(folder: Path) -> str:
    with pytest.raises(CheckpointError) as told:
        read_source(folder)
    assert "\n" not in str(told.value)
    return str(told.value)


def test_runs_of_one_config_with_other_seeds_are_repeats(tmp_path: Path) -> None:
    for seed in (0, 1):
        written(tmp_path, f"mine{seed}", "magrpo", seed, train__environment_steps=400 + seed)
    assert [run.seed for run in read_source(tmp_path).runs] == [0, 1]


def test_runs_of_two_tasks_are_not_pooled(tmp_path: Path) -> None:
    written(tmp_path, "one", "magrpo", 0)
    written(tmp_path, "two", "collm_cc", 0, task__horizon=5)
    assert "one and two cannot be compared (task.horizon was 2, is 5)" in refusal(tmp_path)


def test_runs_that_differ_in_more_than_the_seed_are_no_repeats(tmp_path: Path) -> None:
    written(tmp_path, "one", "magrpo", 0)
    written(tmp_path, "two", "magrpo", 1, algorithm__discount=0.5)
    assert "(algorithm.discount was 0.9, is 0.5)" in refusal(tmp_path)


@pytest.mark.parametrize("algorithm", ["magrpo", "collm_cc"])
@pytest.mark.parametrize(
    ("setting", "value"), [("split", "train"), ("greedy", True), ("episodes", 2)]
)
def test_runs_that_were_evaluated_otherwise_are_not_pooled(
    tmp_path: Path, algorithm: str, setting: str, value: object
) -> None:
    written(tmp_path, "one", "magrpo", 0)
    written(tmp_path, "two", algorithm, 1, **{f"evaluation__{setting}": value})
    assert f"(evaluation.{setting} was " in refusal(tmp_path)


def test_a_copy_of_a_run_is_no_second_seed(tmp_path: Path) -> None:
    run = written(tmp_path, "mine", "magrpo", 0)
    shutil.copytree(run, run.with_name("copy"))
    assert "(both are of magrpo with seed 0)" in refusal(tmp_path)


def test_a_label_in_the_folders_name_tells_settings_apart(tmp_path: Path) -> None:
    written(tmp_path, "long-s0", "magrpo", 0)
    written(tmp_path, "short-s0", "magrpo", 0, algorithm__discount=0.5)
    assert {run.algorithm for run in read_source(tmp_path).runs} == {"long", "short"}
