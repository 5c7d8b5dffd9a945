"""What an update records of its critic, against numbers from the run's own trees and values."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny import register, save_model

from colearn.config import load_config
from colearn.runs.record import RunFolder
from colearn.training.loop import Experiment


@pytest.fixture(autouse=True)
def _notes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    register(monkeypatch, notes="tiny:Notes")
    yield


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_model(tmp_path_factory.mktemp("model"))


def settings(model: str, frozen: bool) -> dict[str, Any]:
    return {
        "task": {"name": "notes", "horizon": 2, "items": 3},
        "algorithm": {"name": "collm_cc", "value_loss": {"frozen_targets": frozen}},
        "models": {"*": {"path": model, "learning_rate": 3e-2}},
        "agents": {"*": {"sampling": {"max_tokens": 6}}},
        "critic": {"path": model, "learning_rate": 3e-2, "baseline": "none"},
        "train": {"environment_steps": 12, "episodes": 6},
        "evaluation": {"episodes": 1, "every": 1000},
        "run": {"device": "cpu"},
    }


@pytest.mark.parametrize("frozen", [True, False])
def test_a_line_says_by_turn_what_the_update_s_values_left(
    frozen: bool, model: str, tmp_path: Path
) -> None:
    experiment = Experiment(load_config(settings(model, frozen)), tmp_path / "run")
    trees, updater = experiment.trees(), experiment.updater
    assert updater is not None and updater.critic is not None
    values = updater.critic.values(trees)
    experiment.run()
    (line,) = RunFolder(tmp_path / "run").critic_lines()
    for turn in line.turns:
        told = np.array(
            [
                (tree.returns(1.0)[turn.turn + 1], by_agent[agent][turn.turn])
                for tree, by_agent in zip(trees, values, strict=True)
                for agent in ("ada", "ben")
            ]
        )
        returns, guesses = told.T
        assert turn.number == 12
        assert turn.variance == pytest.approx(float(np.var(returns)))
        assert turn.error_variance == pytest.approx(float(np.var(returns - guesses)), rel=1e-4)
        assert turn.error_square == pytest.approx(
            float(np.mean((returns - guesses) ** 2)), rel=1e-4
        )
    # six episodes of three items: two of each, so three degrees of freedom at the first turn
    assert [turn.freedom for turn in line.turns] == [3, 0]
    assert sum(number for _, _, number in line.calibration) == 24


def test_a_resumed_run_has_one_line_for_each_update(model: str, tmp_path: Path) -> None:
    config = settings(model, True)
    Experiment(load_config(config), tmp_path / "run").run()
    path = tmp_path / "run" / "critic.jsonl"
    later = path.read_text().splitlines()[-1].replace('"iteration": 1', '"iteration": 2')
    path.write_text(f"{path.read_text()}{later}\n")
    longer = load_config(config, {"train.environment_steps": 24})
    Experiment(longer, tmp_path / "run", resume=True).run()
    assert [line.iteration for line in RunFolder(tmp_path / "run").critic_lines()] == [1, 2]
