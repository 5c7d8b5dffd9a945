"""From the LM head's output to log-probabilities: what architectures scale, how many logits a pass
computes at once, and the log-probabilities of chosen tokens."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

_FACTORS = ("logit_scale", "lm_head_multiplier", "output_multiplier")
"""Settings that multiply logits: Cohere's, Falcon H1's, Muse's."""
LEAST = 2**24
"""Elements of a block on a CPU, and at least on any device."""
MOST = 2**29
_PART = 256
"""An element of a block for so many bytes of a device's memory: with its copy in float32 and its
softmax a block takes about a 20th of it."""
_ROWS = 256
"""Rows in one call of `logsumexp`, which allocates a tensor of the size of its input."""


def scaled_logits(config: Any, logits: Tensor) -> Tensor:
    """Logits [..., V] of the LM head with the scaling and the cap that a text model's config names,
    without the words that pad its head."""
    for name in _FACTORS:
        factor = getattr(config, name, None)
        if factor is not None:
            logits = logits * factor
    scaling = getattr(config, "logits_scaling", None)
    if scaling is not None:
        multiplies = str(config.model_type).startswith("hyperclovax")  # Granite's divides
        logits = logits * scaling if multiplies else logits / scaling
    cap = getattr(config, "final_logit_softcapping", None)
    if cap is not None:
        logits = torch.tanh(logits / cap) * cap
    words = getattr(config, "unpadded_vocab_size", None)  # Inkling
    return logits if words is None else logits[..., :words]


@cache
def logits_at_once(device: torch.device) -> int:
    """Elements of a block of logits. The head's weights are read once for each block, so blocks are
    as large as the device's memory allows; longer batches compute blocks, and again in backward."""
    if device.type != "cuda":
        return LEAST
    return for_memory(torch.cuda.mem_get_info(device)[1])


def for_memory(size: int) -> int:
    """For an accelerator with so many bytes of memory."""
    return min(max(LEAST, size // _PART), MOST)


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
