"""Computes logits and log-probabilities from the LM head's output, with the scaling of each
architecture, in blocks that fit the device's memory."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

_FACTORS = ("logit_scale", "lm_head_multiplier", "output_multiplier")
"""Config fields that multiply logits, in Cohere, Falcon H1 and Muse."""
LEAST = 2**24
"""Number of elements in a block of logits on a CPU, and the minimum number of elements on an
accelerator."""
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
    """Return the number of elements in a block of logits. The LM head's weights are read once for
    each block, so blocks are as large as the device's memory allows. A batch that needs several
    blocks is computed block by block, and recomputed in the backward pass."""
    if device.type != "cuda":
        return LEAST
    return for_memory(torch.cuda.mem_get_info(device)[1])


def for_memory(size: int) -> int:
    """Value of `logits_at_once` for an accelerator with `size` bytes of memory."""
    return min(max(LEAST, size // _PART), MOST)


def chosen_logprobs(logits: Tensor, ids: Tensor) -> Tensor:
    """Return the log-probabilities [N] of the tokens `ids` [N] under `logits` [N, V].

    Values and gradients equal, bit for bit, the values and gradients of `logsumexp` with `gather`.
    The backward passes of `logsumexp` and `gather` allocate three [N, V] tensors. The backward pass
    of this function overwrites `logits` instead, and can therefore run only once.
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
