"""The clipped policy loss against torchrl's ClipPPOLoss, given the same log-probabilities."""

from __future__ import annotations

import pytest
import torch
from torch.distributions import Distribution

from colearn.contract import PolicyBatch
from colearn.methods.loss.policy_gradient import PolicyGradient

nn = pytest.importorskip("tensordict.nn", reason="torchrl is the reference here")
tensordict = pytest.importorskip("tensordict", reason="torchrl is the reference here")
objectives = pytest.importorskip("torchrl.objectives", reason="torchrl is the reference here")

CLOSE = 1e-5
ACTIONS = 24
CLIP = {"clip": 0.1, "clip_high": 0.3}


class Stated(Distribution):
    """Its log-probabilities are the policy's output, whatever the action."""

    arg_constraints = {}  # noqa: RUF012 - torch's own interface

    def __init__(self, logprob):
        super().__init__(validate_args=False)
        self.logprob = logprob

    def log_prob(self, action):
        return self.logprob


def torchrl_loss(logprobs, old, advantages):
    """Value, gradient by log-probability and clip fraction; [N] each, a mean over N."""
    actor = nn.ProbabilisticTensorDictSequential(
        nn.TensorDictModule(torch.nn.Identity(), in_keys=["observation"], out_keys=["logprob"]),
        nn.ProbabilisticTensorDictModule(
            in_keys=["logprob"], out_keys=["action"], distribution_class=Stated
        ),
    )
    loss = objectives.ClipPPOLoss(
        actor, None, clip_epsilon=(0.1, 0.3), entropy_bonus=False, critic_coeff=None
    )
    logprobs = logprobs.clone().requires_grad_()
    result = loss(
        tensordict.TensorDict(
            {
                "observation": logprobs,
                "action": torch.zeros(len(old)),
                loss.tensor_keys.sample_log_prob: old,
                "advantage": advantages[:, None],
            },
            batch_size=[len(old)],
        )
    )
    (gradient,) = torch.autograd.grad(result["loss_objective"], logprobs)
    return result["loss_objective"].item(), gradient, result["clip_fraction"].item()


def our_loss(loss, logprobs, old, advantages, action_of):
    logprobs = logprobs.clone().requires_grad_()
    value, metrics = loss(
        PolicyBatch(
            logprobs=logprobs,
            action_of=action_of,
            advantages=advantages,
            old_logprobs=old,
            behaviour=old,
            ref_logprobs=None,
            entropy=None,
            total_samples=len(advantages),
            total_tokens=len(logprobs),
        )
    )
    (gradient,) = torch.autograd.grad(value, logprobs)
    return value.item(), gradient, metrics


@pytest.fixture(scope="module")
def drawn():
    """Actions of one to five tokens with ratios on both sides of every clip."""
    generator = torch.Generator().manual_seed(4)
    action_of = torch.arange(ACTIONS).repeat_interleave(torch.arange(ACTIONS) % 5 + 1)
    old = -torch.rand(len(action_of), generator=generator) * 4
    moved = old + 0.3 * torch.randn(len(action_of), generator=generator)
    return moved, old, torch.randn(ACTIONS, generator=generator), action_of


def test_the_token_loss_is_that_of_torchrl_with_a_token_for_an_action(drawn):
    logprobs, old, advantages, action_of = drawn
    theirs, expected, outside = torchrl_loss(logprobs, old, advantages[action_of])
    loss = PolicyGradient(ratio="token", reduction="token_mean", **CLIP)
    ours, our_gradient, metrics = our_loss(loss, logprobs, old, advantages, action_of)
    assert 0.1 < metrics["clip_fraction"] < outside
    assert ours == pytest.approx(theirs, abs=CLOSE)
    assert float((our_gradient - expected).abs().max()) < CLOSE


def test_the_sequence_loss_is_that_of_torchrl_with_a_response_for_an_action(drawn):
    logprobs, old, advantages, action_of = drawn
    summed, before = (torch.zeros(ACTIONS).index_add(0, action_of, x) for x in (logprobs, old))
    theirs, expected, _ = torchrl_loss(summed, before, advantages)
    ours, gradient, metrics = our_loss(PolicyGradient(**CLIP), logprobs, old, advantages, action_of)
    assert metrics["clip_fraction"] > 0.1
    assert ours == pytest.approx(theirs, abs=CLOSE)
    assert float((gradient - expected[action_of]).abs().max()) < CLOSE
