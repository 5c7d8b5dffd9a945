"""SAO as a choice of parts, in the words of the documentation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tiny import register, save_model

from colearn.config import load_config
from colearn.contract import NetworkKey
from colearn.training.loop import Experiment

ROOT = Path(__file__).parents[2]


def documented() -> dict[str, Any]:
    page = (ROOT / "docs" / "howto" / "answers.md").read_text()
    section = page.split("### Train as SAO does")[1]
    config: dict[str, Any] = yaml.safe_load(section.split("```yaml")[1].split("```")[0])
    return config


def test_the_critic_trains_first_then_twice_as_often_and_leaves_its_attention(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One warm-up iteration and two with one step of each actor: a critic of one agent takes two
    steps in each of the three."""
    register(monkeypatch, notes="tiny:Notes")
    config, path = documented(), save_model(tmp_path / "model")
    config["models"]["*"] = {"path": path, "learning_rate": 1e-3}
    config["critic"] |= {"path": path, "dtype": "float32", "warmup_iterations": 1}
    config |= {
        "task": {"name": "notes", "horizon": 2, "items": 3},
        "agents": {"*": {"sampling": {"max_tokens": 4}}},
        "train": {**config["train"], "environment_steps": 12, "episodes": 2},
        "evaluation": {"episodes": 1},
    }
    config["run"]["device"] = "cpu"
    experiment = Experiment(load_config(config), tmp_path / "run")
    experiment.run()
    learners = experiment.team.learners
    for agent in ("ada", "ben"):
        actor, critic = learners[NetworkKey("actor", agent)], learners[NetworkKey("critic", agent)]
        assert (actor.steps, critic.steps) == (2, 6)
        names = {name for name in critic.weights() if not name.startswith("head.")}
        assert names and all(".mlp." in name for name in names)
