"""Attention over packed trees on accelerators: FlexAttention with the batch's block mask."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, flex_attention

from .segment_mask import block_mask
from .tree_mask import TreeMask

LARGEST_DENSE = 2**22
"""Maximum number of elements of a dense mask. For a mask up to this size, compiling a FlexAttention
kernel takes more time than it saves."""


class FlexMask(Tensor):
    """An empty 4-d mask tensor that carries a block mask through transformers to the attention
    function."""

    blocks: BlockMask

    @staticmethod
    def of(mask: TreeMask, device: torch.device, window: int | None = None) -> FlexMask:
        carrier = torch.empty((1, 1, 0, 0), dtype=torch.bool).as_subclass(FlexMask)
        carrier.blocks = block_mask(mask, device, window)
        return carrier


def too_large(mask: TreeMask) -> bool:
    """Whether the pattern's dense mask is too large to build on an accelerator."""
    return len(mask.pieces) * mask.width**2 > LARGEST_DENSE


def attend(query: Tensor, key: Tensor, value: Tensor, blocks: BlockMask, scale: float) -> Tensor:
    """Compute the attention output [B, heads, T, D] for `key` and `value` [B, key heads, T, D]."""
    kind = query.device.type
    if torch.is_autocast_enabled(kind):
        compute = torch.get_autocast_dtype(kind)
        query, key, value = query.to(compute), key.to(compute), value.to(compute)
    settings: dict[str, Any] = {"scale": scale, "enable_gqa": True}
    attended: Tensor = kernel()(query, key, value, block_mask=blocks, **settings)
    return attended


@cache
def kernel() -> Any:
    """Return the compiled FlexAttention kernel; an uncompiled kernel would hold all scores in
    memory at once."""
    return torch.compile(flex_attention)
