"""A run that is stopped and resumed has the numbers of the uninterrupted one."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from colearn.config import Config, load_config
from colearn.runs.record import RunFolder
from colearn.training.experience import Experience
from colearn.training.interruption import Interrupted
from colearn.training.loop import Experiment

TIMES = ("seconds", "memory", "per_second", "time/", "idle", "utilization")


def config() -> Config:
    """A critic with means by item; past selves from the second iteration on; a critic with two
    epochs."""
    return load_config(
        {
            "task": {"name": "dpomdp", "problem": "two_step", "penalty": -10},
            "algorithm": {"name": "collm_cc", "value_loss": {"frozen_targets": True}},
            "models": {
                "agent_1": {"path": "embedded-tiny", "learning_rate": 1e-3},
                "agent_2": {"path": "embedded-tiny", "learning_rate": 1e-3},
            },
            "agents": {"*": {"sampling": {"max_tokens": 2}}},
            "critic": {
                "path": "embedded-tiny",
                "learning_rate": 1e-3,
                "baseline": "item",
                "epochs": 2,
            },
            "cast": {"name": "league", "pool": 1, "every": 2, "self_play": 0.0},
            "train": {"environment_steps": 100, "iterations": 3, "episodes": 2},
            "evaluation": {"every": 2, "episodes": 1, "transcripts": 0},
            "run": {"device": "cpu", "checkpoint_every": None},
        }
    )


def measured(folder: Path) -> list[Any]:
    """The lines of metrics without those of time and memory."""
    return [
        (
            line.kind,
            line.iteration,
            line.environment_steps,
            line.updates,
            {k: v for k, v in line.metrics.items() if not any(t in k for t in TIMES)},
        )
        for line in RunFolder(folder).lines()
    ]


def test_a_run_that_stops_and_goes_on_has_the_numbers_of_the_uninterrupted_one(
    tmp_path: Path,
) -> None:
    Experiment(config(), tmp_path / "whole").run()
    with Experiment(config(), tmp_path / "run") as run:
        run.evaluate()
        run.step()
        abandoned(run)
        run.step()
        told = run.evaluate()
        assert run.evaluate() == told  # not measured again
    resumed = Experiment(config(), tmp_path / "run", resume=True)
    assert resumed.run().iterations == 3
    assert [line[3] for line in measured(tmp_path / "run") if line[0] == "update"] == [1, 2, 3]
    assert measured(tmp_path / "run") == measured(tmp_path / "whole")


def abandoned(run: Experiment) -> None:
    """A step that a signal ends during its rollout."""

    def interrupted(*_: Any, **__: Any) -> None:
        raise Interrupted(signal.SIGTERM)

    with pytest.MonkeyPatch.context() as patched, pytest.raises(Interrupted):
        patched.setattr(Experience, "take", interrupted)
        run.step()
