"""Runs whose process is changed by code of the user, or whose trackers cannot write."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch

import colearn
from colearn.errors import CheckpointError
from colearn.text.notes import note_once
from tests.helpers.reward_functions import matches
from tests.integration.test_objects import ROWS, SETTINGS, TEAM, TINY


def train(out: str | Path, reward: Any, **changes: Any) -> colearn.Result:
    settings = {**SETTINGS, **changes}
    return colearn.train(TEAM, "magrpo", models=TINY, data=ROWS, reward=reward, out=out, **settings)


def test_a_reward_that_leaves_the_current_folder_moves_no_file_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)

    def leaves(prompts: Any, completions: Any, **_: Any) -> list[float]:
        os.chdir(tmp_path / "other")
        return [1.0] * len(completions)

    train("run", leaves)
    assert (tmp_path / "run" / "run.json").is_file()
    assert not list((tmp_path / "other").iterdir())


def test_a_tracker_that_cannot_write_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "tensorboard").touch()
    with pytest.raises(CheckpointError, match=r"run: cannot write \(File exists"):
        train(tmp_path / "run", matches, run={"trackers": ["tensorboard"]})


def test_a_reward_that_switches_gradients_off_does_not_switch_training_off(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def switches_off(prompts: Any, completions: Any, **_: Any) -> list[float]:
        torch.set_grad_enabled(False)
        return [float(len(text)) for text in completions]

    note_once.cache_clear()
    try:
        train(tmp_path / "off", switches_off)
        assert torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)
    lines = [json.loads(line) for line in (tmp_path / "off" / "metrics.jsonl").open()]
    norms = [
        value
        for line in lines
        for name, value in line["metrics"].items()
        if line["kind"] == "update" and name.endswith("grad_norm")
    ]
    assert norms and all(norm > 0.0 for norm in norms)
    assert "changed torch.set_grad_enabled for the whole process; put back" in (
        capsys.readouterr().err
    )
