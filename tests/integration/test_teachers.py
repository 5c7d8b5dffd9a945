"""Teachers: what they score, what is refused, and that a model learns nothing from itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from taught import taught
from tiny import register, save_model

from colearn.config import load_config, resolve
from colearn.contract import NetworkKey
from colearn.contract.rows import ActionTokens, Piece, Row
from colearn.errors import ConfigError
from colearn.runs.record import open_run, read_run
from colearn.training.learners.batch import evaluate
from colearn.training.load_team import load_team
from colearn.training.loop import Experiment
from colearn.training.update.build_updater import build_updater


@pytest.fixture(scope="module", autouse=True)
def _notes() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        register(patch, notes="tiny:Notes")
        yield


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Two agents whose teacher has other weights."""
    student = save_model(tmp_path_factory.mktemp("student"))
    teacher = save_model(tmp_path_factory.mktemp("teacher"), seed=1)
    return taught(student, teacher)


def test_a_loss_that_reads_a_teacher_needs_one(config: dict[str, Any]) -> None:
    untaught = {"*": {"path": config["models"]["*"]["path"]}}
    with pytest.raises(ConfigError, match=r"models\.ada\.teacher: .* is above 0; name the path"):
        resolve(load_config({**config, "models": untaught}))


def test_a_teacher_without_weight_is_not_loaded(config: dict[str, Any]) -> None:
    plain = {**config, "algorithm": {"name": "mareinforce"}}
    assert [key.kind for key in resolve(load_config(plain)).networks] == ["actor", "actor"]
    taught = {**config, "algorithm": {"name": "mareinforce", "loss": {"teacher": 0.1}}}
    kinds = [key.kind for key in resolve(load_config(taught)).networks]
    assert kinds == ["actor", "actor", "teacher", "teacher"]


def test_a_teacher_of_another_vocabulary_is_one_line(
    config: dict[str, Any], tmp_path: Path
) -> None:
    other = save_model(tmp_path / "other", merges=True)
    models = {"*": {**config["models"]["*"], "teacher": other}}
    with pytest.raises(ConfigError, match=r"models\.ada\.teacher: its vocabulary differs from"):
        build_updater(load_team(load_config({**config, "models": models})))


def test_the_teacher_scores_the_agents_tokens_as_its_own_model_does(
    config: dict[str, Any],
) -> None:
    """Here the second team's actor has the path of the first team's teacher."""
    own = config["models"]["*"]
    swapped = {"*": {**own, "path": own["teacher"], "teacher": own["path"]}}
    team = load_team(load_config(config))
    other = load_team(load_config({**config, "models": swapped}))
    row = Row(
        tokens=tuple(range(5, 25)),
        pieces=(Piece(0, 20, -1, 0, 0),),
        spans=(ActionTokens(node=1, start=4, end=20, before=3),),
    )
    (scored,) = team.copies[NetworkKey("teacher", "ada")].evaluate([row])
    (its_own,) = evaluate(other.networks[NetworkKey("actor", "ada")], [row], token_budget=64)
    (student,) = evaluate(team.networks[NetworkKey("actor", "ada")], [row], token_budget=64)
    assert scored.logprobs.tolist() == its_own.logprobs.tolist() != student.logprobs.tolist()
    team.close()
    other.close()


def test_a_model_that_is_its_own_teacher_has_nothing_to_learn(
    config: dict[str, Any], tmp_path: Path
) -> None:
    own = {**config["models"]["*"], "teacher": config["models"]["*"]["path"]}
    Experiment(load_config({**config, "models": {"*": own}}), tmp_path / "run").run()
    (update,) = read_run(open_run(tmp_path / "run")).updates
    assert update.metrics["ada/teacher_kl"] == update.metrics["ada/grad_norm"] == 0.0
