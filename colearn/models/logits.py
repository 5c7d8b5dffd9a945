"""Logits and log-probabilities from the LM head's output: scaling for each architecture, the size
of a block of logits, and the log-probabilities of chosen tokens."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

_FACTORS = ("logit_scale", "lm_head_multiplier", "output_multiplier")
"""Config fields that multiply logits, in Cohere, Falcon H1 and Muse."""
LEAST = 2**24
"""Number of elements of a block of logits on a CPU, and the minimum number on any device."""
MOST = 2**29
_PART = 256
"""Bytes of device memory per element of a block. A block with its float32 copy and its softmax
takes about a 20th of the device's memory."""
_ROWS = 256
"""Number of rows in one call of `logsumexp`, which allocates a tensor of the size of its input."""


def scaled_logits(config: Any, logits: Tensor) -> Tensor:
    """Apply the scaling and soft cap in a text model's config to the LM head's output. Returns
    logits [..., V] without the padding entries of the vocabulary."""
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
    """Number of elements of a block of logits. The head's weights are read once for each block, so
    blocks are as large as the device's memory allows. Batches of more than one block are computed
    block by block, and recomputed in the backward pass."""
    if device.type != "cuda":
        return LEAST
    return for_memory(torch.cuda.mem_get_info(device)[1])


def for_memory(size: int) -> int:
    """Value of `logits_at_once` for an accelerator with `size` bytes of memory."""
    return min(max(LEAST, size // _PART), MOST)


def chosen_logprobs(logits: Tensor, ids: Tensor) -> Tensor:
    """[N] log-softmax of `logits` [N, V] at `ids` [N].

    Values and gradients equal those of `logsumexp` and `gather` bit for bit. The backward passes of
    these two functions allocate three [N, V] tensors; the backward pass here overwrites `logits`
    instead, so it can run only once.
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
