"""Norms and MLPs that keep their inputs only: transformers' outputs and gradients."""

from __future__ import annotations

import pytest
import torch
from local_learners import relative
from test_tree_attention import rows_of
from tiny import SIZES, tiny_model

from colearn.config import LoRASettings
from colearn.models import base as base_module
from colearn.models.base import Base
from colearn.models.lean_layers import LARGE, kept_inputs, lean_layers
from colearn.models.network import Network
from colearn.training.learners.batch import make_batch

CPU = torch.device("cpu")
KINDS = ["llama", "qwen3", "gemma3", "mistral"]
CASES = [("llama", True), ("qwen3", False), ("gemma3", True), ("mistral", False)]


def passed(network, monkeypatch, least):
    """Log-probabilities and gradients, with lean layers in passes of `least` elements or more."""
    monkeypatch.setattr(base_module, "LARGE", least)
    outputs = network(make_batch(rows_of("rows of other shapes"), CPU))
    outputs.logprobs.square().sum().backward()
    gradients = {n: p.grad.clone() for n, p in network.trained().items() if p.grad is not None}
    network.zero_grad()
    return outputs.logprobs.detach(), gradients


def network_of(kind, compute=torch.float32, adapter=False):
    double = compute == torch.float32 and not adapter
    base = Base(tiny_model(kind, dtype=torch.float64 if double else torch.float32), compute)
    if adapter:
        base.causal.requires_grad_(False)
        base.add_adapter("one", LoRASettings(rank=2, targets="all-linear"))
        for parameter in base.adapter_parameters("one").values():
            torch.nn.init.normal_(parameter, std=0.1)
    return Network(base, "one" if adapter else None)


@pytest.mark.parametrize("kind", KINDS)
def test_all_norms_and_mlps_of_the_architecture_are_found(kind):
    model = tiny_model(kind)
    names = [type(m).__name__ for m in model.modules()]
    expected = sum(name.endswith(("RMSNorm", "MLP")) for name in names)
    assert expected >= 7
    assert len(lean_layers(model)) == expected


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", ["float32", "bfloat16", "adapter"])
def test_outputs_are_bit_for_bit_the_same_and_gradients_to_rounding(kind, case, monkeypatch):
    compute = torch.bfloat16 if case == "bfloat16" else torch.float32
    network = network_of(kind, compute, adapter=case == "adapter")
    # fewer rows in a product change its last bits
    monkeypatch.setattr(base_module, "of_read_positions", lambda *_: [])
    plain, expected = passed(network, monkeypatch, float("inf"))
    lean, gradients = passed(network, monkeypatch, 0)
    assert torch.equal(plain, lean)
    assert gradients.keys() == expected.keys()
    assert relative(expected, gradients) < (1e-2 if case == "bfloat16" else 1e-5)


@pytest.mark.parametrize(("kind", "training"), [("llama", True), ("gemma3", False)])
@pytest.mark.parametrize("name", ["mlp", "self_attn.q_proj", "self_attn.o_proj"])
def test_the_last_layer_computes_the_read_positions_only(kind, name, training, monkeypatch):
    """Without a gradient, too: old log-probabilities then have the last bits of the training
    pass."""
    network, counts = network_of(kind), []
    for layer in network.base.causal.model.layers:
        layer.get_submodule(name).register_forward_hook(
            lambda _, inputs, output: counts.append(int(output.ne(0).any(-1).sum()))
        )
    monkeypatch.setattr(base_module, "LARGE", 0)
    batch = make_batch(rows_of("rows of other shapes"), CPU)
    with torch.set_grad_enabled(training):
        network(batch)
    places = [*zip(batch.token_rows.tolist(), batch.token_columns.tolist(), strict=True)]
    assert len(set(places)) < len(places), "siblings are predicted from the same token"
    assert counts[-1] == len(set(places)) < counts[0]


@pytest.mark.parametrize(("kind", "adapter"), CASES)
def test_where_the_last_layer_is_not_read_it_has_no_effect(kind, adapter, monkeypatch):
    network = network_of(kind, adapter=adapter).double()
    whole, expected = passed(network, monkeypatch, float("inf"))
    cut, gradients = passed(network, monkeypatch, 0)
    torch.testing.assert_close(cut, whole, rtol=1e-6, atol=1e-6)
    assert gradients.keys() == expected.keys()
    assert relative(expected, gradients) < 1e-6


@pytest.mark.parametrize(("kind", "adapter"), CASES)
def test_attention_may_be_wider_than_the_model(kind, adapter, monkeypatch):
    """As in Qwen3-0.6B, Gemma 3 1B and Mistral Nemo: here 4 heads of 16 in a model of 32."""
    monkeypatch.setitem(SIZES, "head_dim", 16)
    network = network_of(kind, adapter=adapter).double()
    whole, expected = passed(network, monkeypatch, float("inf"))
    cut, gradients = passed(network, monkeypatch, 0)
    torch.testing.assert_close(cut, whole, rtol=1e-6, atol=1e-6)
    assert relative(expected, gradients) < 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_read_positions_are_computed_in_the_precision_of_the_others(kind, monkeypatch):
    network = network_of(kind, torch.bfloat16, adapter=True)
    whole, _ = passed(network, monkeypatch, float("inf"))
    cut, _ = passed(network, monkeypatch, 0)
    torch.testing.assert_close(cut, whole, rtol=0, atol=1e-5)


def bytes_kept(module, inputs, lean):
    """Bytes that a forward pass keeps for backward, without the module's weights."""
    weights = {p.untyped_storage().data_ptr() for p in module.parameters()}
    kept = {}

    def note(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = (storage.nbytes(), tensor)
        return tensor

    with (
        kept_inputs(lean_layers(module) if lean else []),
        torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor),
    ):
        output = module(inputs)
    del output
    return sum(size for size, _ in kept.values())


def test_an_mlp_keeps_its_input_and_two_tensors_of_its_inner_width():
    mlp = tiny_model("llama").model.layers[0].mlp
    width, inner = mlp.gate_proj.in_features, mlp.gate_proj.out_features
    states = torch.randn(1, 10, width, requires_grad=True)
    assert bytes_kept(mlp, states, lean=True) == 10 * 4 * (width + 2 * inner)
    assert bytes_kept(mlp, states, lean=False) == 10 * 4 * (width + 4 * inner)


def test_a_norm_keeps_its_input_and_a_number_per_token():
    norm = tiny_model("qwen3").model.norm
    states = torch.randn(1, 10, len(norm.weight), requires_grad=True)
    assert bytes_kept(norm, states, lean=True) == 10 * 4 * (len(norm.weight) + 1)
    assert bytes_kept(norm, states, lean=False) > 2 * 10 * 4 * len(norm.weight)


def test_a_projection_with_hooks_is_called():
    mlp, calls = tiny_model("llama").model.layers[0].mlp, []
    mlp.down_proj.register_forward_pre_hook(lambda *_: calls.append(1))
    with kept_inputs(lean_layers(mlp)):
        mlp(torch.randn(1, 3, mlp.gate_proj.in_features))
    assert calls == [1]


def test_afterwards_the_layers_are_as_they_were(monkeypatch):
    network = network_of("qwen3")
    passed(network, monkeypatch, 0)
    assert not any("forward" in module.__dict__ for module in network.base.causal.modules())


def test_small_passes_are_transformers_own(monkeypatch):
    """Embedded models keep their numbers bit for bit."""
    assert LARGE == 2**19
    network = network_of("llama")
    monkeypatch.setattr(base_module, "kept_inputs", None)
    network(make_batch(rows_of("a fork"), CPU))
