"""Log-probabilities of chosen tokens, with a backward pass that allocates no [N, V] tensor."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

_ROWS = 256
"""Rows in one call of `logsumexp`, which allocates a tensor of the size of its input."""


def chosen_logprobs(logits: Tensor, ids: Tensor) -> Tensor:
    """[N] log-softmax of `logits` [N, V] at `ids` [N].

    Values and gradients are bit for bit those of `logsumexp` and `gather`, whose backward passes
    allocate three [N, V] tensors. This one overwrites `logits`, so it runs once.
    """
    logprobs: Tensor = _ChosenLogprobs.apply(logits, ids)
    return logprobs


class _ChosenLogprobs(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, logits: Tensor, ids: Tensor) -> Tensor:
        normaliser = torch.cat([part.logsumexp(-1) for part in logits.split(_ROWS)])
        context.save_for_backward(logits, ids, normaliser)
        return logits.gather(-1, ids[:, None]).squeeze(-1) - normaliser

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None]:
        logits, ids, normaliser = context.saved_tensors
        to_logits = logits.sub_(normaliser[:, None]).exp_().mul_(-gradient[:, None])
        return to_logits.scatter_add_(-1, ids[:, None], gradient[:, None]), None
