"""Layers for accelerators, on the CPU: the numbers of transformers' and peft's layers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tiny import SIZES, tiny_model
from torch import Tensor
from transformers import Qwen2Config, Qwen2ForCausalLM

from colearn.config import LoRASettings
from colearn.models.base import Base
from colearn.models.device_layers import DeviceLayers, compute_bytes

IDS = torch.arange(60).view(3, 20) * 7 % 250
USED: dict[str, Any] = {"none": None, "one": "first", "one per row": ["second", None, "first"]}


def base_of(kind: str, targets: tuple[Any, Any]) -> Base:
    """A frozen base with two adapters on these layers; no weight of them is zero. Qwen2 has
    biases for queries, keys and values."""
    biased = kind == "qwen2"
    model = tiny_model("qwen3" if biased else kind)
    if biased:
        shape = {name: getattr(model.config, name) for name in (*SIZES, "vocab_size")}
        model = Qwen2ForCausalLM(Qwen2Config(**shape)).eval()
    model.requires_grad_(False)
    base = Base(model)
    torch.manual_seed(0)
    for name, layers in zip(("first", "second"), targets, strict=True):
        base.add_adapter(name, LoRASettings(rank=4, alpha=8.0, targets=layers))
        for parameter in base.adapter_parameters(name).values():
            torch.nn.init.normal_(parameter.detach(), std=0.2)
    for name, parameter in model.named_parameters():
        if biased and name.endswith("bias"):
            torch.nn.init.normal_(parameter.detach())
    return base


def hidden(base: Base, adapters: Any, layers: DeviceLayers | None = None) -> Tensor:
    with torch.no_grad(), base.using(adapters):
        if layers is None:
            return base.hidden(IDS)
        with layers.used():
            return base.hidden(IDS)


@pytest.mark.parametrize("adapters", USED)
@pytest.mark.parametrize("kind", ["qwen3", "llama", "gemma3", "qwen2"])
@pytest.mark.parametrize("targets", [("all-linear",) * 2, (["q_proj", "up_proj"], ["v_proj"])])
def test_layers_with_one_input_compute_what_each_computes(
    kind: str, targets: tuple[Any, Any], adapters: str
) -> None:
    base = base_of(kind, targets)
    expected = hidden(base, USED[adapters])
    layers = DeviceLayers(base, torch.float32, base.cache_argument)
    assert (hidden(base, USED[adapters], layers) - expected).abs().max() <= 1e-5


def test_frozen_weights_are_in_memory_once() -> None:
    base = base_of("qwen3", ("all-linear",) * 2)
    hidden(base, "first", DeviceLayers(base, torch.float32, base.cache_argument))
    attention: Any = base.causal.get_decoder().layers[0].self_attn
    projections = [attention.q_proj, attention.k_proj, attention.v_proj]
    places = {layer.base_layer.weight.untyped_storage().data_ptr() for layer in projections}
    assert len(places) == 1
    assert compute_bytes(base.causal, torch.float32) == 0


def test_a_training_pass_has_the_same_gradients_after_its_weights_have_moved() -> None:
    base = base_of("qwen3", ("all-linear",) * 2)

    def gradients() -> dict[str, Tensor]:
        with base.using("first"):
            base.hidden(IDS).sum().backward()
        found = {}
        for name, parameter in base.adapter_parameters("first").items():
            assert parameter.grad is not None
            found[name], parameter.grad = parameter.grad, None
        return found

    before = gradients()
    with torch.inference_mode():
        hidden(base, "first", DeviceLayers(base, torch.float32, base.cache_argument))
    after = gradients()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_copies_of_trained_weights_in_the_compute_type_are_counted() -> None:
    """Of two layers each: q, k and v, gate and up are stacked; o and down are read as they are."""
    model = tiny_model("qwen3")
    layer: Any = model.get_decoder().layers[0]
    stacked = (layer.self_attn.q_proj, layer.self_attn.k_proj, layer.self_attn.v_proj)
    stacked += (layer.mlp.gate_proj, layer.mlp.up_proj)
    each = sum(one.weight.numel() for one in stacked)
    base = Base(model)
    assert compute_bytes(base.causal, torch.float32) == 4 * each * len(model.get_decoder().layers)
