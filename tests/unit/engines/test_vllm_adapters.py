"""Adapters in an engine that records what it is told: names, versions, weights and zeros."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftConfig
from safetensors.torch import load_file
from tiny import byte_tokenizer, save_model
from transformers import AutoModelForCausalLM

from colearn.config import LoRASettings
from colearn.contract import Sampling, WeightUpdate
from colearn.engines.vllm_weights import LoadedAdapter, VLLMCopy
from colearn.models.base import Base
from colearn.models.weight_update import adapter_weights
from colearn.rollout.agents import AgentSpec, ChatFormat

CHAT = ChatFormat(byte_tokenizer())


class Engine(VLLMCopy):
    """Stands for vLLM: the weights of each adapter that it has loaded, by name."""

    max_length = 64

    def __init__(self, base: Base, roles: Mapping[str, AgentSpec]) -> None:
        super().__init__(base, roles, tolerance=None)
        self.weights: dict[str, dict[str, torch.Tensor]] = {}
        self.numbers: list[int] = []

    def load_adapter(self, adapter: LoadedAdapter) -> None:
        self.numbers.append(adapter.number)
        self.weights[adapter.name] = load_file(Path(adapter.folder) / "adapter_model.safetensors")

    def unload_adapter(self, adapter: LoadedAdapter) -> None:
        del self.weights[adapter.name]

    def unused(self, *_: Any) -> Any:
        raise AssertionError("adapters need nothing else")

    sample = load_full = fall_asleep = wake_up = unused


@pytest.fixture
def base(tmp_path: Path) -> Base:
    base = Base(AutoModelForCausalLM.from_pretrained(save_model(tmp_path / "model")))
    base.model.requires_grad_(False)
    for name in ("first", "second"):
        base.add_adapter(name, LoRASettings(rank=2))
        for parameter in base.adapter_parameters(name).values():
            torch.nn.init.normal_(parameter)
    return base


def begun(base: Base, *, zeros: bool = False) -> Engine:
    """An engine of the agents first and second on adapters of these names, and of one on none."""
    names = ("first", "second", None) if zeros else ("first", "second")
    roles = {str(name): AgentSpec(adapter=name, chat=CHAT, sampling=Sampling()) for name in names}
    engine = Engine(base, roles)
    engine.begin_adapters()
    return engine


def same(weights: Mapping[str, torch.Tensor], others: Mapping[str, torch.Tensor]) -> bool:
    return weights.keys() == others.keys() and all(weights[k].equal(others[k]) for k in weights)


def name_for(engine: Engine, agent: str) -> str:
    loaded = engine.loaded_for(agent)
    assert loaded is not None
    return loaded.name


def test_each_adapter_is_loaded_with_its_own_weights(base: Base) -> None:
    engine = begun(base)
    for name in ("first", "second"):
        assert same(engine.weights[name_for(engine, name)], adapter_weights(base, name))


def test_an_adapters_folder_is_one_that_peft_reads(base: Base) -> None:
    engine = begun(base)
    loaded = engine.loaded_adapters["second"]
    read = PeftConfig.from_pretrained(loaded.folder)
    assert (read.peft_type, read.r) == ("LORA", 2)  # type: ignore[attr-defined]


def test_a_new_version_has_a_new_name_and_the_new_weights_and_the_previous_one_is_unloaded(
    base: Base,
) -> None:
    engine = begun(base)
    other, previous = name_for(engine, "second"), engine.loaded_adapters["first"]
    new = {name: tensor + 1.0 for name, tensor in adapter_weights(base, "first").items()}
    engine.write([WeightUpdate(version=1, adapters={"first": new, "of no agent": new})])
    assert name_for(engine, "first") != previous.name
    assert set(engine.weights) == {name_for(engine, "first"), other}
    assert same(engine.weights[name_for(engine, "first")], new)
    assert not Path(previous.folder).exists()
    assert engine.numbers == [1, 2, 3], "vLLM refuses 0 and keeps the tensors of a known number"


def test_a_role_without_an_adapter_has_zeros(base: Base) -> None:
    engine = begun(base, zeros=True)
    zeros = engine.weights[name_for(engine, "None")]
    assert len(engine.weights) == 3 and zeros
    assert not any(tensor.any() for tensor in zeros.values())


def test_without_such_a_role_the_base_itself_answers(base: Base) -> None:
    engine = begun(base)
    engine.roles["third"] = AgentSpec(chat=CHAT)
    assert engine.loaded_for("third") is None and len(engine.weights) == 2


def test_two_engines_never_share_a_name(base: Base) -> None:
    assert not set(begun(base).weights) & set(begun(base).weights)
