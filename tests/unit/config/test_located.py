"""Relative paths and modules of a config: beside the config first, then in the current folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from colearn.config import load_config, recorded_settings
from colearn.config.located import as_written, located
from colearn.registry import own_function
from colearn.registry.own_code import FolderFinder

CONFIG = """
task: {name: dataset, path: rows.jsonl, reward: "treasure_reward:paid"}
models: {"*": {path: model}}
agents: {"*": {system: rows.jsonl}}
compare: {algorithms: {grpo: {critic.path: model}}}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A config with its rows, its reward and a model's folder; another folder is the current."""
    here, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    (here / "model").mkdir(parents=True)
    elsewhere.mkdir()
    (here / "treasure.yaml").write_text(CONFIG)
    (here / "rows.jsonl").write_text('{"prompt": "say it"}\n')
    (here / "treasure_reward.py").write_text("def paid(completions, **_):\n    return [1.0]\n")
    monkeypatch.chdir(elsewhere)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    yield here
    sys.modules.pop("treasure_reward", None)


def test_paths_are_found_beside_the_config(project: Path) -> None:
    config = load_config("../project/treasure.yaml")
    assert config.task.settings["path"] == str(project / "rows.jsonl")
    assert config.models["*"].path == str(project / "model")
    assert config.compare.algorithms["grpo"]["critic.path"] == str(project / "model")
    assert config.agents["*"].system == "rows.jsonl"  # a text


def test_a_path_that_is_not_beside_the_config_is_found_in_the_current_folder(
    project: Path,
) -> None:
    (project / "rows.jsonl").unlink()
    Path("rows.jsonl").write_text('{"prompt": "say it"}\n')
    config = load_config("../project/treasure.yaml")
    assert config.task.settings["path"] == str(Path("rows.jsonl").absolute())


def test_a_path_on_the_command_line_is_found_in_the_current_folder(project: Path) -> None:
    Path("rows.jsonl").write_text('{"prompt": "say it"}\n')
    config = load_config("../project/treasure.yaml", ["task.path=rows.jsonl"])
    assert config.task.settings["path"] == str(Path("rows.jsonl").absolute())


def test_modules_are_found_beside_the_config(project: Path) -> None:
    load_config("../project/treasure.yaml")
    assert own_function("treasure_reward:paid", "task.reward")([]) == [1.0]


def test_a_record_keeps_the_paths_as_written_and_says_where_they_are(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = recorded_settings(load_config("../project/treasure.yaml"))
    assert recorded["task"]["path"] == "rows.jsonl"
    assert recorded["run"]["folders"][0] == str(project)
    monkeypatch.chdir(tmp_path)
    again = load_config(recorded)  # as an evaluation from a third folder reads it
    assert again.task.settings["path"] == str(project / "rows.jsonl")
    assert any(str(project) in f.folders for f in sys.meta_path if isinstance(f, FolderFinder))


def test_a_config_is_the_same_from_every_folder(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def recorded(path: str) -> dict[str, Any]:
        plain = recorded_settings(load_config(path))
        del plain["run"]["folders"]
        return plain

    from_elsewhere = recorded("../project/treasure.yaml")
    monkeypatch.chdir(project)
    assert recorded("treasure.yaml") == from_elsewhere


def test_only_files_that_exist_become_absolute(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("")
    data = {"task": {"path": "rows.jsonl", "other": "none.jsonl", "list": ["rows.jsonl", 1]}}
    found = located(data, [str(tmp_path)])
    rows = str(tmp_path / "rows.jsonl")
    assert found == {"task": {"path": rows, "other": "none.jsonl", "list": [rows, 1]}}
    assert as_written(found, [str(tmp_path)]) == data
