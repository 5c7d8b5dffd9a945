"""Exported agents as a team: each has its own name, and a team that cannot play is refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import tiny
from exported import export_tiny

import colearn
from colearn.errors import ConfigError


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_tiny(tmp_path_factory.mktemp("team") / "ada")


def test_an_agent_in_a_renamed_folder_keeps_its_name(exported: Path, tmp_path: Path) -> None:
    shutil.copytree(exported, tmp_path / "seed_0")
    assert list(colearn.load_team(tmp_path, device="cpu")) == ["ada"]
    with pytest.raises(ConfigError, match="no agent 'seed_0'"):
        colearn.load_agent(tmp_path, "seed_0", device="cpu")


def test_two_folders_of_one_agent_are_no_team(exported: Path, tmp_path: Path) -> None:
    """The second one was taken, without a word."""
    for folder in ("ada", "ada_old"):
        shutil.copytree(exported, tmp_path / folder)
    line = r": ada and ada_old both hold the agent '\w+'; load each by load_agent"
    for names in (None, ["ada"]):
        with pytest.raises(ConfigError, match=line):
            colearn.load_team(tmp_path, names, device="cpu")


@pytest.mark.parametrize(
    ("agents", "line"),
    [
        ({"ada": "team/ada", "ben": None}, "agents.ada: is a str; give an agent of colearn.load_"),
        ({"ada": None}, "agents.ada: is a NoneType; give an agent of colearn.load_agent"),
        ({"ben": None}, "agents: none for the task's 'ada'; load one for each seat"),
        (["ada"], "agents: is a list; give a folder, or loaded agents by their name"),
        (None, "agents: is a NoneType; give a folder, or loaded agents by their name"),
    ],
)
def test_a_team_without_loaded_agents_is_refused_and_its_task_closed(
    agents: Any, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = []
    monkeypatch.setattr(tiny.Notes, "close", lambda self: closed.append(self), raising=False)
    with pytest.raises(ConfigError) as caught:
        colearn.evaluate({"name": "tiny:Notes", "horizon": 2}, agents, device="cpu")
    assert str(caught.value).startswith(line)
    assert len(closed) == 1
