"""The last layer at read positions: the outputs and gradients of a pass over all positions."""

from __future__ import annotations

import pytest
import torch
from gradients import relative
from test_tree_attention import rows_of
from tiny import Notes, behaviour, cast, gap, play, tiny_model

from colearn.config import LoRASettings
from colearn.contract.rows import Mark
from colearn.learn.batch import make_batch
from colearn.models import base as base_module
from colearn.models.base import Base
from colearn.models.last_layer import WORTHWHILE, pointwise, saved
from colearn.models.network import Network
from colearn.models.value_head import ValueHead
from colearn.rollout.shapes import KaryTree

CPU = torch.device("cpu")
KINDS = ["llama", "qwen3", "gemma3"]
SAME = 1e-6
"""Relative gap in double precision (logits are float32)."""


def network_of(kind, *, adapter=False, checkpointing=False):
    base = Base(tiny_model(kind, dtype=torch.float64))
    head = ValueHead(base.config.hidden_size)
    torch.manual_seed(1)
    torch.nn.init.normal_(head.linear.weight)
    if adapter:
        base.causal.requires_grad_(False)
        base.add_adapter("one", LoRASettings(rank=2, targets="all-linear"))
        for parameter in base.adapter_parameters("one").values():
            torch.nn.init.normal_(parameter, std=0.1)
    return Network(base, "one" if adapter else None, head, checkpointing=checkpointing)


def marked_rows():
    """Trees whose actions and last token are read, siblings from the same token."""
    rows = rows_of("rows of other shapes")
    return [
        type(row)(
            tokens=row.tokens,
            pieces=row.pieces,
            spans=row.spans[:2],
            marks=(Mark(0, 0), Mark(1, len(row.tokens) - 1)),
            tree=row.tree,
        )
        for row in rows
    ]


def passed(network, monkeypatch, least):
    """Outputs and gradients, with the last layer cut where it saves `least` multiplications."""
    monkeypatch.setattr(base_module, "WORTHWHILE", least)
    outputs = network(make_batch(marked_rows(), 0, CPU))
    (outputs.logprobs.square().sum() + outputs.values.square().sum()).backward()
    gradients = {n: p.grad.clone() for n, p in network.trained().items() if p.grad is not None}
    network.zero_grad()
    return outputs, gradients


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("adapter", [False, True])
@pytest.mark.parametrize("checkpointing", [False, True])
def test_outputs_and_gradients_are_those_of_a_pass_over_all_positions(
    kind, adapter, checkpointing, monkeypatch
):
    network = network_of(kind, adapter=adapter, checkpointing=checkpointing)
    whole, expected = passed(network, monkeypatch, float("inf"))
    cut, gradients = passed(network, monkeypatch, 0)
    torch.testing.assert_close(cut.logprobs, whole.logprobs, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(cut.values, whole.values, rtol=1e-6, atol=1e-6)
    assert gradients.keys() == expected.keys()
    assert relative(expected, gradients) < SAME


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_mlp_computes_the_read_positions_and_the_others_all(kind, monkeypatch):
    network, counts = network_of(kind), []
    for layer in network.base.causal.model.layers:
        layer.mlp.down_proj.register_forward_pre_hook(
            lambda _, inputs: counts.append(inputs[0].shape[:-1].numel())
        )
    monkeypatch.setattr(base_module, "WORTHWHILE", 0)
    batch = make_batch(marked_rows(), 0, CPU)
    network(batch)
    distinct = {
        *zip(batch.token_rows.tolist(), batch.token_columns.tolist(), strict=True),
        *zip(batch.mark_rows.tolist(), batch.mark_columns.tolist(), strict=True),
    }
    assert len(distinct) < len(batch.token_rows) + len(batch.mark_rows), "siblings share a token"
    assert counts == [batch.input_ids.numel(), len(distinct)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("adapters", ["", "one one", "one two"])
def test_a_rollout_samples_the_same_actions_after_a_prefill_cut_in_the_last_layer(
    kind, adapters, monkeypatch
):
    lora = dict(zip(("ada", "ben"), adapters.split(), strict=True)) if adapters else None
    trees, rows = {}, {}
    for least in (float("inf"), 0):
        monkeypatch.setattr(base_module, "WORTHWHILE", least)
        team, counts = cast(kind=kind, lora=lora, dtype=torch.float64), []
        team.bases["ada"].causal.model.layers[-1].mlp.down_proj.register_forward_pre_hook(
            lambda _, inputs, counts=counts: counts.append(inputs[0].shape[:-1].numel())
        )
        trees[least], rows[least] = play(Notes(), team, KaryTree(k=2))[0], sum(counts)
    for agent in ("ada", "ben"):
        assert gap(behaviour(trees[0], agent), behaviour(trees[float("inf")], agent)) < 1e-9
    several = adapters == "one two"  # rows of several adapters are computed everywhere
    assert rows[0] == rows[float("inf")] if several else rows[0] < rows[float("inf")]


def test_afterwards_the_layer_is_as_it_was(monkeypatch):
    network = network_of("qwen3")
    modules = pointwise(network.base.causal.model.layers[-1])
    assert len(modules) == 3, "queries, the attention's output, the MLP"
    passed(network, monkeypatch, 0)
    assert not any("forward" in module.__dict__ for module in modules)


def test_small_passes_compute_the_whole_layer():
    """Embedded models keep their numbers bit for bit."""
    layer = tiny_model("qwen3").model.layers[-1]
    weights = sum(p.numel() for module in pointwise(layer) for p in module.parameters())
    assert saved(layer, 10) == 10 * weights
    assert WORTHWHILE == 2**28
