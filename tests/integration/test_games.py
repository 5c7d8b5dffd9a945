"""Players who are paid each for itself, and seats that code plays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pennies import PAYOFF, WORDS, exploitability
from scripted_endpoint import ScriptedEndpoint

from colearn.config import load_config
from colearn.errors import ConfigError
from colearn.training.loop import Experiment

PENNIES: dict[str, Any] = {
    "task": {"name": "pennies:Pennies"},
    "algorithm": {"name": "magrpo", "credit": {"name": "payoff"}, "rollout": {"k": 16}},
    "models": {"*": {"path": "embedded-tiny", "learning_rate": 3e-3}},
    "agents": {"*": {"sampling": {"max_tokens": 2}}},
    "train": {"environment_steps": 1280, "episodes": 4},
    "evaluation": {"every": 100, "repeats": 64},
    "run": {"device": "cpu"},
}


def test_the_equilibrium_of_the_test_game_is_the_one_worked_out_by_hand() -> None:
    assert exploitability({"row": 0.4, "column": 0.4}) == pytest.approx(0.0)
    assert exploitability({"row": 0.5, "column": 0.5}) == pytest.approx(0.5)


def test_a_player_finds_the_best_answer_to_a_program_from_its_own_payoff(tmp_path: Path) -> None:
    seat = {"program": {"name": "says", "text": "heads"}}
    config = load_config({**PENNIES, "agents": {**PENNIES["agents"], "row": seat}})
    experiment = Experiment(config, tmp_path / "run")
    record = experiment.run()
    assert PAYOFF[WORDS.index("heads")][WORDS.index("tails")] == -1.0  # what column wins
    # of 64 episodes; the first policy says either word, and earns about 0
    assert record.first["return/column"] < 0.5
    assert record.last["return/column"] > 0.9
    assert record.last["return/row"] == -record.last["return/column"]
    assert list(map(str, experiment.team.learners)) == ["actor-column"]


def test_a_seat_may_be_played_by_a_server_and_is_not_trained(tmp_path: Path) -> None:
    endpoint = ScriptedEndpoint(name="column", speak=lambda messages, seed: "tails")
    with endpoint.serving():
        seats = {**PENNIES["agents"], "column": {"endpoint": endpoint.url}}
        short = {"environment_steps": 64, "episodes": 2}
        config = load_config({**PENNIES, "agents": seats, "train": short})
        experiment = Experiment(config, tmp_path / "run")
        record = experiment.run()
    assert list(map(str, experiment.team.learners)) == ["actor-row"]
    # 2 iterations of 2 episodes with K=16, and two evaluations of 64
    assert len(endpoint.requests) == 64 + 2 * 64
    assert {body["messages"][-1]["content"] for body in endpoint.requests} == {
        "column: heads or tails"
    }
    assert len({body["seed"] for body in endpoint.requests[64:]}) > 64  # one for each action
    assert record.joint_actions == 64


def test_team_credit_in_a_game_that_pays_no_team_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    config = load_config({**PENNIES, "algorithm": {"name": "magrpo"}})
    with pytest.raises(
        ConfigError, match=r"^algorithm\.credit: SharedReward reads team rewards, .*payoff"
    ):
        Experiment(config, tmp_path / "run")
