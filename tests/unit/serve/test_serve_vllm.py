"""The command that becomes vLLM's server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from exported import export_tiny
from typer.testing import CliRunner

from colearn.deploy.export import AgentManifest
from colearn.deploy.serve.vllm import vllm_command
from colearn.entry.cli import app
from colearn.errors import ConfigError, MissingExtra


def command(folder: Path = Path("out/ada"), **settings: Any) -> list[str]:
    given = {"agent": "ada", "task": "notes", "algorithm": "magrpo", "weights": "merged"}
    manifest = AgentManifest(**{**given, **settings})
    return vllm_command(manifest, folder, host="127.0.0.1", port=8001, context=512)


def test_merged_weights_are_served_under_the_agents_name() -> None:
    text = " ".join(command(dtype="bfloat16"))
    assert "--model out/ada --served-model-name ada --dtype bfloat16" in text
    assert "--host 127.0.0.1 --port 8001 --max-model-len 512" in text


def test_an_adapter_has_the_agents_name_and_its_base_another(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text('{"base_model_name_or_path": "hub/base"}')
    text = " ".join(command(tmp_path, weights="adapter", base="hub/base"))
    assert f"--model hub/base --enable-lora --lora-modules ada={tmp_path}" in text
    assert "--served-model-name ada-base" in text


def test_a_window_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"window 64.*--engine transformers"):
        command(window=64)


def test_without_vllm_there_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    folder = export_tiny(tmp_path / "ada")
    result = CliRunner().invoke(app, ["serve", str(folder), "--engine", "vllm"])
    assert isinstance(result.exception, MissingExtra)
    assert "colearn-llm[vllm]" in str(result.exception)


@pytest.mark.parametrize("option", ["--max-batch", "--threads", "--max-tokens"])
def test_an_option_that_vllms_server_lacks_is_refused(tmp_path: Path, option: str) -> None:
    words = ["serve", str(tmp_path), "--engine", "vllm", "--port", "8001", option, "4"]
    result = CliRunner().invoke(app, words)
    assert isinstance(result.exception, ConfigError)
    assert str(result.exception).startswith(f"{option}: vLLM's server does not have it")


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
