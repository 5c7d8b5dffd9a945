"""Folders of peft adapters are not models of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from peft import LoraConfig, get_peft_model
from tiny import register, save_model, tiny_model

from colearn.config import load_config, resolve
from colearn.errors import ConfigError
from colearn.estimate import estimate
from colearn.models.folders import with_folders
from colearn.models.load import check_model


@pytest.fixture
def adapter(tmp_path: Path) -> str:
    model = get_peft_model(tiny_model("llama"), LoraConfig(task_type="CAUSAL_LM", r=4))
    model.save_pretrained(tmp_path / "adapter")
    return str(tmp_path / "adapter")


def settings(path: str, critic: str) -> dict[str, Any]:
    return {
        "task": {"name": "notes", "horizon": 1, "items": 2},
        "algorithm": {"name": "collm_cc"},
        "models": {"*": {"path": path, "learning_rate": 1e-3}},
        "critic": {"path": critic},
        "train": {"environment_steps": 4, "episodes": 2},
        "run": {"device": "cpu"},
    }


@pytest.mark.parametrize("field", ["models.ada.path", "critic.path"])
def test_an_adapter_is_refused_with_the_remedy(
    field: str, adapter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(monkeypatch, notes="tiny:Notes")
    model = save_model(tmp_path / "model", "llama")
    paths = (model, adapter) if field == "critic.path" else (adapter, model)
    config = load_config(settings(*paths))
    line = rf"^{field}: .*adapter is an adapter; merge it into its base with peft [^\n]+$"
    with pytest.raises(ConfigError, match=line):
        with_folders(resolve(config))
    with pytest.raises(ConfigError, match=line):
        estimate(config)
    with pytest.raises(ConfigError, match=line):
        check_model(adapter, field=field)
