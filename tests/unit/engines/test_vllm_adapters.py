"""Adapters in an engine that records what it is told: names, versions, weights and zeros."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tiny import byte_tokenizer, save_model
from transformers import AutoModelForCausalLM

from colearn.config import LoRASettings
from colearn.contract import Sampling
from colearn.engines.vllm_weights import LoadedAdapter, VLLMAdapters
from colearn.models.base import Base
from colearn.models.weight_update import adapter_weights
from colearn.rollout.agents import AgentSpec, ChatFormat

CHAT = ChatFormat(byte_tokenizer())


class Engine:
    """Stands for vLLM: the weights of each adapter that it has loaded, by name."""

    def __init__(self) -> None:
        self.loaded: dict[str, dict[str, torch.Tensor]] = {}
        self.numbers: list[int] = []

    def load(self, adapter: LoadedAdapter) -> None:
        self.numbers.append(adapter.number)
        self.loaded[adapter.name] = load_file(Path(adapter.folder) / "adapter_model.safetensors")

    def unload(self, adapter: LoadedAdapter) -> None:
        del self.loaded[adapter.name]


@pytest.fixture
def base(tmp_path: Path) -> Base:
    base = Base(AutoModelForCausalLM.from_pretrained(save_model(tmp_path / "model")))
    base.model.requires_grad_(False)
    for name in ("first", "second"):
        base.add_adapter(name, LoRASettings(rank=2))
        for parameter in base.adapter_parameters(name).values():
            torch.nn.init.normal_(parameter)
    return base


def begun(base: Base, folder: Path, *, zeros: bool = False) -> tuple[VLLMAdapters, Engine]:
    engine = Engine()
    names = ("first", "second", None) if zeros else ("first", "second")
    roles = {str(name): AgentSpec(adapter=name, chat=CHAT, sampling=Sampling()) for name in names}
    adapters = VLLMAdapters(base, roles, folder, "run", load=engine.load, unload=engine.unload)
    adapters.begin()
    return adapters, engine


def same(weights: Mapping[str, torch.Tensor], others: Mapping[str, torch.Tensor]) -> bool:
    return weights.keys() == others.keys() and all(weights[k].equal(others[k]) for k in weights)


def name_of(adapters: VLLMAdapters, name: str | None) -> str:
    loaded = adapters.of(name)
    assert loaded is not None
    return loaded.name


def test_each_adapter_is_loaded_with_its_own_weights(base: Base, tmp_path: Path) -> None:
    adapters, engine = begun(base, tmp_path)
    for name in ("first", "second"):
        assert same(engine.loaded[name_of(adapters, name)], adapter_weights(base, name))


def test_a_new_version_has_a_new_name_and_the_new_weights_and_the_previous_one_is_unloaded(
    base: Base, tmp_path: Path
) -> None:
    adapters, engine = begun(base, tmp_path)
    other, previous = name_of(adapters, "second"), adapters.of("first")
    new = {name: tensor + 1.0 for name, tensor in adapter_weights(base, "first").items()}
    adapters.write("first", new)
    assert previous is not None and name_of(adapters, "first") != previous.name
    assert set(engine.loaded) == {name_of(adapters, "first"), other}
    assert same(engine.loaded[name_of(adapters, "first")], new)
    assert not Path(previous.folder).exists()
    assert engine.numbers == [1, 2, 3], "vLLM refuses 0 and keeps the tensors of a known number"


def test_a_role_without_an_adapter_has_zeros(base: Base, tmp_path: Path) -> None:
    adapters, engine = begun(base, tmp_path, zeros=True)
    zeros = engine.loaded[name_of(adapters, None)]
    assert len(engine.loaded) == 3 and zeros
    assert not any(tensor.any() for tensor in zeros.values())


def test_without_such_a_role_the_base_itself_answers(base: Base, tmp_path: Path) -> None:
    adapters, engine = begun(base, tmp_path)
    assert adapters.of(None) is None and len(engine.loaded) == 2
