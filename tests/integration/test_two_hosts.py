"""Two models that update in threads: the weights of taking turns, and updates at the same time."""

from __future__ import annotations

from pathlib import Path

import torch

from colearn.config import load_config
from colearn.runs.record import open_run
from colearn.training.loop import Experiment


def trained(folder: Path, threads: bool) -> dict[str, torch.Tensor]:
    """Weights after 3 updates."""
    model = {"path": "embedded-tiny", "learning_rate": 1e-3}
    settings = {
        "task": {"name": "dpomdp", "problem": "two_step", "penalty": -10},
        "algorithm": {"name": "collm_dc"},
        "models": {"*": model},
        "agents": {"*": {"sampling": {"max_tokens": 2}}},
        "critic": model,
        "train": {"episodes": 4, "environment_steps": 4000, "iterations": 3},
        "evaluation": {"every": 1000, "episodes": 1},
        "run": {"device": "cpu", "host": {"name": "local", "threads": threads}},
    }
    experiment = Experiment(load_config(settings), folder)
    assert experiment.run().updates == 3
    return {
        f"{key}.{name}": weight.clone()
        for key, learner in experiment.team.learners.items()
        for name, weight in learner.weights().items()
    }


def test_models_in_threads_end_with_the_weights_of_models_in_turns(tmp_path: Path) -> None:
    turns, threads = (trained(tmp_path / name, name == "threads") for name in ("turns", "threads"))
    assert turns.keys() == threads.keys()
    assert max(float((turns[name] - one).abs().max()) for name, one in threads.items()) < 1e-6
    overlap = {
        name: sum(
            line.metrics["seconds/overlap"] or 0.0
            for line in open_run(tmp_path / name).lines()
            if line.kind == "update"
        )
        for name in ("turns", "threads")
    }
    assert overlap["turns"] == 0.0 < overlap["threads"]
