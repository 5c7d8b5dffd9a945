"""Recomputed activations and logits in blocks give the gradients of a plain backward pass."""

from __future__ import annotations

import pytest
import torch
from local_learners import relative
from test_tree_attention import rows_of
from tiny import tiny_model

from colearn.config import LoRASettings
from colearn.models.base import Base
from colearn.models.logits import chosen_logprobs
from colearn.models.network import Network
from colearn.models.tree_attention import Carrier
from colearn.training.learners.batch import make_batch

CPU = torch.device("cpu")
SAME = 1e-6
"""Relative gap of gradients in double precision (logits are float32)."""


def trained(network, rows, *, entropy=False):
    """Gradients of the sum of squared log-probabilities and, if asked for, of the entropies."""
    outputs = network(make_batch(rows, CPU), entropy=entropy)
    loss = outputs.logprobs.square().sum()
    if entropy:
        loss = loss + outputs.entropy.sum()
    loss.backward()
    gradients = {n: p.grad.clone() for n, p in network.trained().items() if p.grad is not None}
    network.zero_grad()
    return gradients


@pytest.mark.parametrize(
    ("kind", "entropy", "blocks"),
    [("llama", False, True), ("qwen3", True, False), ("gemma3", True, True)],
)
def test_checkpointing_keeps_the_gradient(kind, entropy, blocks, monkeypatch):
    if blocks:
        monkeypatch.setattr("colearn.models.base.by_blocks", lambda mask, *_: Carrier.of(mask.rows))
    base, rows = Base(tiny_model(kind, dtype=torch.float64)), rows_of("rows of other shapes")
    plain = trained(Network(base), rows, entropy=entropy)
    again = trained(Network(base, checkpointing=True), rows, entropy=entropy)
    assert relative(plain, again) < SAME


def test_checkpointing_runs_each_layer_again_in_backward_alone():
    base, runs = Base(tiny_model("llama")), []
    for layer in base.causal.model.layers:
        layer.mlp.register_forward_pre_hook(lambda *_: runs.append(torch.is_grad_enabled()))
    network, batch = Network(base, checkpointing=True), make_batch(rows_of("a fork"), CPU)
    with torch.no_grad():
        network(batch)
    assert len(runs) == 2
    outputs = network(batch)
    assert len(runs) == 4
    outputs.logprobs.sum().backward()
    assert len(runs) == 6
    Network(base)(batch).logprobs.sum().backward()
    assert len(runs) == 8, "the base itself is as it was"


def test_backward_recomputes_with_the_adapter_of_its_forward_pass():
    base = Base(tiny_model("llama", dtype=torch.float64))
    base.causal.requires_grad_(False)
    for name in ("a", "b"):
        base.add_adapter(name, LoRASettings(rank=2, targets="all-linear"))
    for parameter in base.adapter_parameters("b").values():
        torch.nn.init.normal_(parameter)
    rows = rows_of("a fork")
    plain = trained(Network(base, "a"), rows)
    network = Network(base, "a", checkpointing=True)
    loss = network(make_batch(rows, CPU)).logprobs.square().sum()
    with base.using("b"):
        loss.backward()
    again = {n: p.grad for n, p in network.trained().items() if p.grad is not None}
    assert relative(plain, again) < SAME


@pytest.mark.parametrize("entropy", [False, True])
def test_logits_in_blocks_keep_the_gradient(entropy, monkeypatch):
    base, rows = Base(tiny_model("llama", dtype=torch.float64)), rows_of("three levels")
    whole = trained(Network(base), rows, entropy=entropy)
    monkeypatch.setattr(type(base), "logits_at_once", 3 * base.config.vocab_size)
    sizes, logits = [], base.logits
    monkeypatch.setattr(base, "logits", lambda part: sizes.append(len(part)) or logits(part))
    parts = trained(Network(base), rows, entropy=entropy)
    assert max(sizes) == 3 and sum(sizes) == 2 * sum(row.action_tokens for row in rows)
    assert relative(whole, parts) < SAME


def test_chosen_logprobs_are_bit_for_bit_those_of_logsumexp_and_gather():
    generator = torch.Generator().manual_seed(0)
    logits = 5.0 * torch.randn(40, 300, generator=generator)
    ids = torch.randint(300, (40,), generator=generator)
    weights = torch.randn(40, generator=generator)
    results = []
    for function in (
        chosen_logprobs,
        lambda x, i: x.gather(-1, i[:, None]).squeeze(-1) - x.logsumexp(-1),
    ):
        inputs = logits.clone().requires_grad_()
        values = function(inputs, ids)
        (gradient,) = torch.autograd.grad((weights * values).sum(), inputs)
        results.append((values, gradient))
    assert results[0][0].equal(results[1][0]) and results[0][1].equal(results[1][1])


def test_the_gradient_of_chosen_logprobs_is_the_indicator_less_the_softmax():
    logits = torch.tensor([[0.0, 0.0], [0.0, 1.0]], dtype=torch.float64, requires_grad=True)
    values = chosen_logprobs(logits, torch.tensor([0, 1]))
    (2.0 * values[0] + values[1]).backward()
    share = 1.0 / (1.0 + torch.e)  # softmax(0, 1)[0]
    expected = torch.tensor([[1.0, -1.0], [-share, share]], dtype=torch.float64)
    assert torch.allclose(logits.grad, expected)


def test_a_second_derivative_of_chosen_logprobs_is_an_error_and_no_wrong_number():
    logits = torch.zeros(1, 2, requires_grad=True)
    values = chosen_logprobs(logits, torch.tensor([0]))
    (gradient,) = torch.autograd.grad(values.square().sum(), logits, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def test_a_second_backward_pass_of_chosen_logprobs_is_an_error():
    """The first one has overwritten the logits."""
    logits = torch.zeros(1, 2, requires_grad=True)
    total = chosen_logprobs(2.0 * logits, torch.tensor([0])).sum()
    total.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        total.backward()


def test_logprobs_of_many_rows_are_those_of_a_log_softmax_bit_for_bit():
    """The normaliser is computed in blocks of 256 rows."""
    torch.manual_seed(0)
    logits, ids = torch.randn(600, 50), torch.randint(50, (600,))
    expected = logits.gather(-1, ids[:, None]).squeeze(-1) - logits.logsumexp(-1)
    assert torch.equal(chosen_logprobs(logits, ids), expected)
