"""Gradients of a large network on the CPU: one tensor from the first backward pass on."""

from __future__ import annotations

import torch
from local_learners import local_learner
from tiny import tiny_model

from colearn.config import OptimizerSettings
from colearn.models.base import Base
from colearn.models.network import Network, ValueHead
from colearn.training.learners import torch_optimizer


def learner_after_two_passes(least, monkeypatch):
    """Neither pass reaches the value head; networks of `least` weights are large."""
    monkeypatch.setattr(torch_optimizer, "LARGE", least)
    base = Base(tiny_model())
    network = Network(base, head=ValueHead(base.config.hidden_size))
    settings = OptimizerSettings(learning_rate=1e-2, weight_decay=0.5)
    learner = local_learner("one", network, settings, token_budget=100)
    for factor in (1.0, 2.0):
        weights = learner.network.base.causal.parameters()
        learner.optimizer.backward(factor * sum(weight.square().sum() for weight in weights))
    return learner


def gradients(learner):
    return {n: p.grad for n, p in learner.parameters.items() if p.grad is not None}


def test_the_gradients_are_parts_of_one_tensor_with_the_sums_of_both_passes(monkeypatch):
    found = gradients(learner_after_two_passes(0, monkeypatch))
    assert len({one.untyped_storage().data_ptr() for one in found.values()}) == 1
    expected = gradients(learner_after_two_passes(2**62, monkeypatch))
    assert len({one.untyped_storage().data_ptr() for one in expected.values()}) == len(expected)
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_what_no_pass_has_reached_has_no_gradient_and_no_weight_decay(monkeypatch):
    learner = learner_after_two_passes(0, monkeypatch)
    head = learner.parameters["head.linear.weight"]
    assert head.grad is None
    with torch.no_grad():
        head.fill_(1.0)
    learner.step(0.0)
    assert head.eq(1.0).all()
