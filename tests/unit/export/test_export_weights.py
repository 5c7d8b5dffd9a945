"""What an export holds of a trained agent: its merged weights and the settings it is run with."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tiny import save_model
from transformers import AutoModelForCausalLM

from colearn.config import LoRASettings, load_config
from colearn.export.agent_folders import _manifest
from colearn.export.weights import save_merged
from colearn.models.base import Base
from colearn.models.network import Network

IDS = torch.arange(1, 9)[None]


@pytest.mark.parametrize("adapter", ["team", None])
def test_merged_weights_answer_as_the_agent_did(adapter: str | None, tmp_path: Path) -> None:
    path = save_model(tmp_path / "model")
    base = Base(AutoModelForCausalLM.from_pretrained(path))
    plain = base.causal(input_ids=IDS).logits
    if adapter is not None:
        base.add_adapter(adapter, LoRASettings(rank=2))
        for parameter in base.adapter_parameters(adapter).values():
            torch.nn.init.normal_(parameter, std=0.3)
    with torch.no_grad(), base.using(adapter):
        trained = base.causal(input_ids=IDS).logits
    save_merged(Network(base, adapter), tmp_path / "out", "float32")
    exported = AutoModelForCausalLM.from_pretrained(tmp_path / "out")(input_ids=IDS).logits
    torch.testing.assert_close(exported, trained, rtol=1e-4, atol=1e-4)
    assert ((plain - trained).abs().max() > 0.1) == (adapter is not None)


def manifest(**agent: Any) -> Any:
    config = load_config(
        {
            "task": {"name": "str_build"},
            "models": {"team": {"path": "somewhere"}},
            "agents": {"left": {"model": "team", **agent}, "right": {"model": "team"}},
        }
    )
    trained: Any = SimpleNamespace(run=SimpleNamespace(config=config), paths={"team": "somewhere"})
    return _manifest(trained, "left", False, None)


def test_an_export_has_the_window_and_the_role_of_training() -> None:
    written = manifest(window=64, system="You build.")
    assert (written.window, written.system) == (64, "You build.")
    assert manifest().window is None
