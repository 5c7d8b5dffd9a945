"""A finished run's critic on fresh episodes, beside what can be explained of them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tiny import register, save_model

from colearn.config import load_config
from colearn.deploy.export import export_critics
from colearn.entry.cli import main
from colearn.errors import ConfigError
from colearn.training.loop import Experiment
from colearn.training.study.critic import study_critic


@pytest.fixture(scope="module", autouse=True)
def _notes() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        register(patch, notes="tiny:Notes")
        yield


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_model(tmp_path_factory.mktemp("model"))


def train(folder: Path, model: str, **changes: Any) -> Path:
    settings = {
        "task": {"name": "notes", "horizon": 2, "items": 3},
        "algorithm": {"name": "collm_cc"},
        "models": {"*": {"path": model, "learning_rate": 3e-2}},
        "agents": {"*": {"sampling": {"max_tokens": 6}}},
        "critic": {"path": model, "learning_rate": 3e-2},
        "train": {"environment_steps": 8, "episodes": 2},
        "run": {"device": "cpu"},
    } | changes
    Experiment(load_config(settings), folder).run()
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, model: str) -> Path:
    return train(tmp_path_factory.mktemp("runs") / "run", model)


def test_trees_of_every_item_are_played_and_judged_by_turn(run: Path) -> None:
    (study,) = study_critic(run, repeats=2, branches=3)
    # three items, two trees of 3 + 9 joint actions each; two agents
    assert study.joint_actions == 3 * 2 * 12
    assert [turn.turn for turn in study.turns] == [0, 1]
    assert [turn.number for turn in study.line.turns] == [2 * 6 * 3, 2 * 6 * 9]
    # the two trees of an item share their root: three groups of six, and 18 groups of three
    assert [turn.freedom for turn in study.line.turns] == [3 * 5, 18 * 2]
    for turn in study.turns:
        assert turn.explained is not None and turn.ceiling is not None
        share, low, high = turn.ceiling
        assert low <= share <= high <= 1
        assert turn.explained.mean < 1


def test_a_kept_critic_is_judged_as_the_run_s_own(run: Path, tmp_path: Path) -> None:
    kept = export_critics(run, tmp_path)["team"]
    (own,), (given,) = study_critic(run, repeats=2), study_critic(run, critic=kept, repeats=2)
    assert own.turns == given.turns


def test_the_command_prints_a_line_for_each_turn_and_the_sentence(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["colearn", "study", "critic", str(run), "--repeats", "2"])
    with pytest.raises(SystemExit) as stop:
        main()
    told = capsys.readouterr().out
    assert not stop.value.code
    line = r"  turn [01]: explains \S+ \(R\^2 \S+\); means by item \S+; can be .*: \S+ \[.*\]"
    assert len(re.findall(line, told)) == 2
    assert "whether noise limits learning was not measured" in told  # two steps alone


def test_a_run_without_a_critic_is_one_line_or_is_given_one(
    run: Path, model: str, tmp_path: Path
) -> None:
    algorithm = {"name": "magrpo", "rollout": {"k": 2}}
    groups = train(tmp_path / "groups", model, algorithm=algorithm, critic=None)
    with pytest.raises(ConfigError, match=r"no critic of its own.*--critic"):
        study_critic(groups)
    kept = export_critics(run, tmp_path / "kept")["team"]
    (study,) = study_critic(groups, critic=kept, repeats=2)
    assert study.name == "team"


def test_one_tree_of_an_item_compares_nothing(run: Path) -> None:
    with pytest.raises(ConfigError, match="--repeats, --branches: must be 2 or more"):
        study_critic(run, repeats=1)
