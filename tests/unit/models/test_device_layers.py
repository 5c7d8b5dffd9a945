"""Layers for accelerators, on the CPU: the numbers of transformers' and peft's layers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tiny import SIZES, tiny_model
from torch import Tensor, nn
from transformers import Qwen2Config, Qwen2ForCausalLM

from colearn.config import LoRASettings
from colearn.models.base import Base
from colearn.models.device_layers import (
    DeviceLayers,
    _product,
    _Selection,
    compute_bytes,
    equal_groups,
)

IDS = torch.arange(60).view(4, 15) * 7 % 250
USED: dict[str, Any] = {
    "none": None,
    "one": "first",
    "one per row": ["second", None, "first", "first"],
    "equal groups": ["first", "first", "second", "second"],
}


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


def hidden(
    base: Base, adapters: Any, layers: DeviceLayers | None = None, ids: Tensor = IDS
) -> Tensor:
    with torch.no_grad(), base.using(adapters):
        if layers is None:
            return base.hidden(ids)
        with layers.used():
            return base.hidden(ids)


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


def times(rows: str, *shape: int) -> tuple[list[float], _Selection]:
    """The outputs of a layer for rows 1, 2, ... with these adapters: row x gives x + 2 · 10 x with
    adapter a, x + 3 · 100 x with b and x + 4 · 1000 x with c."""

    def factor(value: float) -> nn.Linear:
        layer = nn.Linear(1, 1, bias=False, dtype=torch.float64).requires_grad_(False)
        layer.weight.fill_(value)
        return layer

    layer = SimpleNamespace(
        base_layer=factor(1.0),
        lora_A={"c": factor(4.0), "b": factor(3.0), "a": factor(2.0)},
        lora_B={"a": factor(10.0), "b": factor(100.0), "c": factor(1000.0)},
        r=dict.fromkeys("abc", 1),
        scaling=dict.fromkeys("abc", 1.0),
    )
    base: Any = SimpleNamespace(row_adapters=list(rows), selected=list(rows))
    selection = _Selection(base)
    states = torch.arange(1.0, len(rows) + 1, dtype=torch.float64).view(shape)
    return _product([layer], torch.float64, selection)(states).flatten().tolist(), selection


@pytest.mark.parametrize("shape", [(4, 1), (4, 1, 1)])
@pytest.mark.parametrize(
    ("rows", "outputs"),
    [
        ("aabb", [21, 42, 903, 1204]),
        ("bbcc", [301, 602, 12003, 16004]),
        ("aaaa", [21, 42, 63, 84]),
        ("abab", [21, 602, 63, 1204]),
        ("bbaa", [301, 602, 63, 84]),
        ("aacc", [21, 42, 12003, 16004]),
        ("abbb", [21, 602, 903, 1204]),
    ],
)
def test_a_row_is_multiplied_by_the_factors_of_its_adapter(
    rows: str, outputs: list[float], shape: tuple[int, ...]
) -> None:
    assert times(rows, *shape)[0] == outputs


@pytest.mark.parametrize(("rows", "masks"), [("aabb", 0), ("bbcc", 0), ("aaaa", 0), ("abbb", 1)])
def test_equal_groups_need_no_mask(rows: str, masks: int) -> None:
    """Of adapters that were added in another order than that of the rows."""
    assert len(times(rows, 4, 1)[1]._masks) == masks


@pytest.mark.parametrize(
    ("rows", "groups"),
    [("aabb", "ab"), ("bbaa", "ba"), ("aabbcc", "abc"), ("aaa", "a")]
    + [(unequal, "") for unequal in ("abab", "aab", "aabba", "abb", "aabbc")],
)
def test_groups_are_equal_if_each_adapter_has_as_many_adjacent_rows(rows: str, groups: str) -> None:
    assert equal_groups(rows) == tuple(groups)


@pytest.mark.parametrize("kind", ["qwen3", "llama", "qwen2"])
def test_rows_in_equal_groups_compute_what_they_compute_in_another_order(kind: str) -> None:
    base = base_of(kind, ("all-linear",) * 2)
    base.double()
    layers = DeviceLayers(base, torch.float64, base.cache_argument)
    grouped = hidden(base, USED["equal groups"], layers)
    order = [0, 2, 1, 3]
    mixed = hidden(base, ["first", "second"] * 2, layers, IDS[order])
    assert (mixed - grouped[order]).abs().max() <= 1e-12


@pytest.mark.parametrize("ranks", [(2, 3), (3, 2)])
def test_adapters_of_unequal_ranks_have_columns_of_their_own(ranks: tuple[int, int]) -> None:
    base = Base(tiny_model("qwen3"))
    torch.manual_seed(0)
    for name, rank in zip(("first", "second"), ranks, strict=True):
        base.add_adapter(name, LoRASettings(rank=rank, alpha=8.0))
        for parameter in base.adapter_parameters(name).values():
            torch.nn.init.normal_(parameter.detach(), std=0.2)
    expected = hidden(base, USED["equal groups"])
    layers = DeviceLayers(base, torch.float32, base.cache_argument)
    assert (hidden(base, USED["equal groups"], layers) - expected).abs().max() <= 1e-5


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
