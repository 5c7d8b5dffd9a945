"""Folders that `colearn serve` refuses."""

from __future__ import annotations

from pathlib import Path

from exported import export_tiny
from typer.testing import CliRunner

from colearn.entry.cli import app
from colearn.errors import ConfigError


def test_what_is_no_exported_agent_is_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["serve", str(tmp_path)])
    assert isinstance(result.exception, ConfigError)
    assert "no exported agent here" in str(result.exception)


def test_a_folder_of_agents_is_told_with_its_agents(tmp_path: Path) -> None:
    agents = [export_tiny(tmp_path / name) for name in ("ada", "ben")]
    result = CliRunner().invoke(app, ["serve", str(tmp_path)])
    assert isinstance(result.exception, ConfigError)
    told = f"{tmp_path}: holds exported agents; give one of {agents[0]}, {agents[1]}"
    assert str(result.exception) == told


def test_a_damaged_folder_is_not_served(tmp_path: Path) -> None:
    folder = export_tiny(tmp_path / "ada")
    (folder / "generation_config.json").write_text("{}")
    result = CliRunner().invoke(app, ["serve", str(folder)])
    assert isinstance(result.exception, ConfigError)
    assert "generation_config.json: damaged" in str(result.exception)
