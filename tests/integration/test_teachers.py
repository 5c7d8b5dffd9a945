"""Teachers: what they score, what is refused, and that a team comes nearer to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import colearn
from colearn.config import load_config, resolve
from colearn.contract import NetworkKey
from colearn.contract.rows import ActionTokens, Piece, Row
from colearn.errors import ConfigError
from colearn.training.learners.batch import evaluate
from colearn.training.load_team import load_team

CONFIG: dict[str, Any] = {
    "task": {"name": "str_build", "horizon": 2},
    "models": {"*": {"path": "embedded-tiny", "teacher": "embedded-tiny:1", "learning_rate": 1e-2}},
    "algorithm": {"name": "distillation"},
    "evaluation": {"episodes": 4},
    "run": {"device": "cpu"},
}


def test_a_loss_that_reads_a_teacher_needs_one() -> None:
    config = load_config({**CONFIG, "models": {"*": {"path": "embedded-tiny"}}})
    with pytest.raises(ConfigError, match=r"models\.builder_1\.teacher: .* is above 0; name the"):
        resolve(config)


def test_a_teacher_without_weight_is_not_loaded() -> None:
    config = load_config({**CONFIG, "algorithm": {"name": "mareinforce"}})
    assert [key.kind for key in resolve(config).networks] == ["actor", "actor"]
    taught = load_config({**CONFIG, "algorithm": {"name": "mareinforce", "loss": {"teacher": 0.1}}})
    assert [key.kind for key in resolve(taught).networks] == ["actor"] * 2 + ["teacher"] * 2


def test_the_teacher_scores_the_agents_tokens_as_its_own_model_does() -> None:
    """Here the second run's actor has the path of the first run's teacher."""
    swapped = {"path": "embedded-tiny:1", "teacher": "embedded-tiny"}
    team = load_team(load_config(CONFIG))
    other = load_team(load_config({**CONFIG, "models": {"*": swapped}}))
    row = Row(
        tokens=tuple(range(5, 25)),
        pieces=(Piece(0, 20, -1, 0, 0),),
        spans=(ActionTokens(node=1, start=4, end=20, before=3),),
    )
    (scored,) = team.copies[NetworkKey("teacher", "builder_1")].evaluate([row])
    (own,) = evaluate(other.networks[NetworkKey("actor", "builder_1")], [row], token_budget=64)
    (student,) = evaluate(team.networks[NetworkKey("actor", "builder_1")], [row], token_budget=64)
    assert scored.logprobs.tolist() == own.logprobs.tolist() != student.logprobs.tolist()
    team.close()
    other.close()


def test_a_model_that_is_its_own_teacher_has_nothing_to_learn(tmp_path: Path) -> None:
    (update,) = trained(tmp_path / "run", 32, teacher="embedded-tiny")
    assert update["builder_1/teacher_kl"] == update["builder_1/grad_norm"] == 0.0


@pytest.mark.slow
def test_a_team_comes_nearer_to_its_teachers(tmp_path: Path) -> None:
    updates = trained(tmp_path / "run", 4096, teacher="embedded-tiny:1", learning_rate=2e-3)
    for agent in ("builder_1", "builder_2"):
        told = [metrics[f"{agent}/teacher_kl"] for metrics in updates]
        assert sum(told[-8:]) < 0.6 * sum(told[:8])


def trained(out: Path, steps: int, **model: Any) -> list[Any]:
    """The metrics of every update of a run."""
    models = {"*": {**CONFIG["models"]["*"], **model}}
    sections = {"evaluation": CONFIG["evaluation"], "run": CONFIG["run"]}
    train = {"environment_steps": steps, "episodes": 16 if steps < 64 else 32}
    result = colearn.train(
        CONFIG["task"], "distillation", models=models, train=train, out=out, **sections
    )
    return [line.metrics for line in result.run.updates]
