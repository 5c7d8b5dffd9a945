"""Teams get better, measured by the exact value of their joint policy and not by samples of it."""

from __future__ import annotations

import json

import pytest

from colearn.config import Config
from colearn.training.loop import Experiment

LOSS = {"ratio": "token", "clip": 0.2, "kl": 0.1, "anneal_fraction": 0.8}
METHODS = {
    "collm_cc": {"advantage": {"normalize": True}, "value_loss": {"rescale": True}},
    "magrpo": {"rollout": {"name": "parallel", "k": 8}, "advantage": {"normalize": True}},
}


@pytest.mark.parametrize("method", METHODS)
def test_five_updates_lift_the_climbing_game_out_of_its_punishments(method, tmp_path):
    """A team that says legal words at random is worth about -4 of 11; the mistakes that bend an
    update (a sign, another agent's advantage, a policy that is not the one that sampled) leave it
    there."""
    grouped = METHODS[method].get("rollout") is not None
    model = "embedded-tiny:100"
    config = {
        "task": {
            "name": "dpomdp",
            "problem": "climbing",
            "horizon": 1,
            "opening": "start",
            "turn": "{observation}",
            "reward_scale": 0.1,
            "penalty": -30.0,
        },
        "algorithm": {"name": method, "loss": LOSS, **METHODS[method]},
        "models": {"*": {"path": model, "learning_rate": 2e-3}},
        "agents": {"*": {"sampling": {"max_tokens": 2}}},
        "critic": {"path": model, "learning_rate": 3e-3},
        "train": {
            "environment_steps": 320,
            "episodes": 8 if grouped else 64,
            "epochs": 6,
            "minibatch": 64,
        },
        "evaluation": {"every": 5, "episodes": 1, "transcripts": 0, "exact": True},
        "run": {"device": "cpu"},
    }
    Experiment(Config.model_validate(config), tmp_path / "run").run()
    lines = map(json.loads, (tmp_path / "run" / "metrics.jsonl").read_text().splitlines())
    exact = [line["metrics"]["exact_return"] * 10 for line in lines if line["kind"] == "evaluation"]
    assert exact[0] < -2.0
    assert exact[-1] > exact[0] + 4.0
