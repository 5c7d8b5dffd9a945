"""A run that is stopped and resumed has the numbers of the uninterrupted one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from colearn.config import Config, load_config
from colearn.experiment.loop import Experiment
from colearn.record import RunFolder

TIMES = ("seconds", "memory", "per_second", "time/", "idle", "utilization")


def config() -> Config:
    """A critic with means by item, and past selves, whose number of games a league remembers."""
    return load_config(
        {
            "task": {"name": "dpomdp", "problem": "two_step", "penalty": -10},
            "algorithm": {"name": "collm_cc", "critic": {"name": "decentralized"}},
            "models": {"*": {"path": "embedded-tiny", "learning_rate": 1e-2}},
            "agents": {"*": {"sampling": {"max_tokens": 2}}},
            "critic": {"path": "embedded-tiny", "learning_rate": 1e-2, "baseline": "item"},
            "cast": {"name": "league", "pool": 1, "every": 1},
            "train": {"environment_steps": 12, "episodes": 2},
            "evaluation": {"every": 2, "episodes": 2, "transcripts": 0},
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
        run.step()
        told = run.evaluate()
        assert run.evaluate() == told  # not measured again
    Experiment(config(), tmp_path / "run", resume=True).run()
    assert measured(tmp_path / "run") == measured(tmp_path / "whole")
