"""Gradients in one allocation: the same numbers, and none for what no pass has reached."""

from __future__ import annotations

import torch
from tiny import tiny_model
from torch import nn

from colearn.config import OptimizerSettings
from colearn.learn import gradient_buffer as module
from colearn.learn.gradient_buffer import LARGE, GradientBuffer, gradient_buffer
from colearn.learn.local import LocalLearner
from colearn.models.base import Base
from colearn.models.network import Network
from colearn.models.value_head import ValueHead


def weights():
    torch.manual_seed(0)
    return [nn.Parameter(torch.randn(size)) for size in (3, 40, 5)]


def test_gradients_are_aligned_views_of_one_tensor_and_add_up():
    one, two, three = weights()
    buffer = GradientBuffer([one, two, three])
    for _ in range(2):
        buffer.allocate()
        (2.0 * one.sum() + 3.0 * two.sum() + three.sum()).backward()
    buffer.drop_unreached()
    assert one.grad.tolist() == [4.0] * 3
    assert two.grad.tolist() == [6.0] * 40
    assert three.grad.tolist() == [2.0] * 5
    start = one.grad.data_ptr()
    assert [p.grad.data_ptr() - start for p in (two, three)] == [64, 64 + 192]


def test_an_unreached_parameter_has_no_gradient_in_any_step():
    one, two, three = weights()
    buffer = GradientBuffer([one, two, three])
    for reached in (two, three):
        buffer.allocate()
        (one.sum() + reached.sum()).backward()
        buffer.drop_unreached()
        assert [p.grad is not None for p in (two, three)] == [reached is two, reached is three]
        for parameter in (one, two, three):
            parameter.grad = None


def test_small_models_and_other_types_have_no_buffer():
    assert gradient_buffer([nn.Parameter(torch.empty(LARGE - 1))]) is None
    assert gradient_buffer([nn.Parameter(torch.empty(LARGE, dtype=torch.float64))]) is None
    assert gradient_buffer([nn.Parameter(torch.empty(LARGE))]) is not None


def stepped(least, monkeypatch):
    """A learner after two steps that never reach its head, and the head's weights before."""
    monkeypatch.setattr(module, "LARGE", least)
    settings = OptimizerSettings(learning_rate=1e-2, weight_decay=0.5)
    base = Base(tiny_model())
    network = Network(base, head=ValueHead(base.config.hidden_size))
    learner = LocalLearner("one", network, settings, token_budget=100)
    head = learner.parameters["head.linear.weight"]
    before = head.detach().clone()
    for _ in range(2):
        learner._begin()
        sum(p.square().sum() for n, p in learner.parameters.items() if p is not head).backward()
        learner.step(0.0)
    return learner, before


def test_steps_with_a_buffer_move_what_steps_without_it_move(monkeypatch):
    """What no pass reaches has neither weight decay nor momentum."""
    (plain, _), (buffered, before) = stepped(LARGE, monkeypatch), stepped(0, monkeypatch)
    assert plain._gradients is None and buffered._gradients is not None
    for name, parameter in plain.parameters.items():
        if name.startswith("model."):
            assert torch.equal(parameter, buffered.parameters[name]), name
    assert torch.equal(buffered.parameters["head.linear.weight"], before)
    assert all(parameter.grad is None for parameter in buffered.parameters.values())
