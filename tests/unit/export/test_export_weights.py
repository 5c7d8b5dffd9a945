"""What an export holds of a trained agent: its merged weights and the settings it is run with."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tiny import save_model
from transformers import AutoModelForCausalLM

from colearn.config import LoRASettings, load_config
from colearn.deploy.export.agent_folders import _manifest
from colearn.deploy.export.weights import save_merged
from colearn.models.base import Base
from colearn.models.network import Network

IDS = torch.arange(1, 9)[None]


def draw_adapter(base: Base, adapter: str, seed: int = 0) -> None:
    base.add_adapter(adapter, LoRASettings(rank=2))
    generator = torch.Generator().manual_seed(seed)
    for parameter in base.adapter_parameters(adapter).values():
        torch.nn.init.normal_(parameter, std=0.3, generator=generator)


@pytest.mark.parametrize("adapter", ["team", None])
def test_merged_weights_answer_as_the_agent_did(adapter: str | None, tmp_path: Path) -> None:
    path = save_model(tmp_path / "model")
    base = Base(AutoModelForCausalLM.from_pretrained(path))
    plain = base.causal(input_ids=IDS).logits
    if adapter is not None:
        draw_adapter(base, adapter)
    with torch.no_grad(), base.using(adapter):
        trained = base.causal(input_ids=IDS).logits
    save_merged(Network(base, adapter), tmp_path / "out", "float32")
    exported = AutoModelForCausalLM.from_pretrained(tmp_path / "out")(input_ids=IDS).logits
    torch.testing.assert_close(exported, trained, rtol=1e-4, atol=1e-4)
    assert ((plain - trained).abs().max() > 0.1) == (adapter is not None)


@pytest.mark.parametrize("seed", range(3))
def test_merged_weights_are_those_of_float64_to_the_last_bits(seed: int, tmp_path: Path) -> None:
    """W + 16 B A, whose two products and their sum float32 rounds three times."""
    path = save_model(tmp_path / "model")
    base = Base(AutoModelForCausalLM.from_pretrained(path))
    draw_adapter(base, "team", seed)
    drawn = {name: one.detach().double() for name, one in base.adapter_parameters("team").items()}
    save_merged(Network(base, "team"), tmp_path / "out", "float32")
    before, after = (
        {name: one.double() for name, one in load_file(folder / "model.safetensors").items()}
        for folder in (Path(path), tmp_path / "out")
    )
    left = dict(drawn)
    for name, weight in before.items():
        layer = name.removesuffix(".weight")
        found = [one for one in drawn if f"{layer}." in one]
        if not found:
            assert torch.equal(after[name], weight)
            continue
        [a], [b] = ([left.pop(one) for one in found if f"lora_{part}" in one] for part in "AB")
        size = weight.abs() + 16 * b.abs() @ a.abs()
        assert ((after[name] - (weight + 16 * b @ a)).abs() <= 4 * 2**-24 * size).all()
    assert drawn and not left


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
