"""How many logits a pass computes at once."""

from __future__ import annotations

from functools import cache

import torch

LEAST = 2**24
"""Elements of a block on a CPU, and at least on any device."""
MOST = 2**29
_PART = 256
"""An element of a block for so many bytes of a device's memory: with its copy in float32 and its
softmax a block takes about a 20th of it."""


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
