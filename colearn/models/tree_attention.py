"""Attention over packed trees block by block: no mask, and no product that the mask would discard.

Each block is one call of torch's fused kernel. The outputs of the blocks that a query takes part in
are merged by their log-sum-exp, and the backward kernels run block by block on the merged result,
as in ring attention (Liu et al. 2023, arXiv 2310.01889), whose blocks lie on several devices.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from einops import rearrange, reduce, repeat
from torch import Tensor
from torch.autograd.function import once_differentiable
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from .tree_mask import Rows, TreeMask

NAME = "colearn_tree"
"""Of the attention implementation, in a transformers model's config while it is in memory."""

_CALL = 2**19
"""The fixed time of a block's call, in multiplications of the dense mask that take as long: a pair
of a query and a key costs heads * head size of them. From `benchmarks/tree_attention.py`."""

_forward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
_backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward


class Carrier(Tensor):
    """An empty tensor of four dimensions, which transformers passes on to attention as it is, with
    the blocks of a batch in place of a mask's elements."""

    rows: tuple[Rows, ...]

    @staticmethod
    def of(rows: tuple[Rows, ...]) -> Carrier:
        carrier = torch.empty((1, 1, 0, 0), dtype=torch.bool).as_subclass(Carrier)
        carrier.rows = rows
        return carrier


def by_blocks(mask: TreeMask, device: torch.device, width: int) -> Carrier | None:
    """The blocks of a batch, where they are possible on this device and faster than its mask.
    `width` is heads * head size."""
    if device.type != "cpu" or mask.rows is None:
        return None
    calls = pairs = 0
    for rows in mask.rows:
        calls += len(rows.blocks)
        pairs += (rows.last - rows.first) * sum(block.pairs for block in rows.blocks)
    saved = len(mask.pieces) * mask.width**2 - pairs
    return Carrier.of(mask.rows) if saved * width > calls * _CALL else None


def tree_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    **settings: Any,
) -> tuple[Tensor, None]:
    """transformers' attention interface: blocks if the mask carries them, else its own sdpa.

    `query` [B, heads, T, D], `key` and `value` [B, key heads, T, D]; the result is
    [B, T, heads, D].
    """
    if not isinstance(attention_mask, Carrier):
        return sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, **settings
        )
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    merged: Tensor = _Blocks.apply(query, key, value, attention_mask.rows, scale)
    return rearrange(merged, "row head token width -> row token head width"), None


class _Blocks(torch.autograd.Function):
    @staticmethod
    def forward(
        context: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        rows: tuple[Rows, ...],
        scale: float,
    ) -> Tensor:
        keys, values = _repeated(key, query), _repeated(value, query)
        batch, heads, width, size = query.shape
        # as the projection after it reads it: [B, T, heads, D]
        exact = torch.promote_types(query.dtype, torch.float32)
        merged = query.new_zeros((batch, width, heads, size), dtype=exact).transpose(1, 2)
        normaliser = query.new_zeros((batch, heads, width), dtype=exact)
        for first, last, blocks in rows:
            for block in blocks:
                asked = slice(block.first, block.last)
                read = slice(block.start, block.end)
                part, logsum = _forward(
                    query[first:last, :, asked],
                    keys[first:last, :, read],
                    values[first:last, :, read],
                    0.0,
                    block.causal,
                    scale=scale,
                )
                before = normaliser[first:last, :, asked]
                output = merged[first:last, :, asked]
                if block.causal:  # the first of each token
                    output.copy_(part)
                    before.copy_(logsum)
                else:
                    # of two softmaxes, the share of the second one is a logistic function
                    share = torch.sigmoid(logsum - before)[..., None]
                    output.lerp_(part.to(exact), share)
                    before.copy_(torch.logaddexp(before, logsum))
        result = merged.to(query.dtype)
        context.save_for_backward(query, key, value, result, normaliser)
        context.rows, context.scale = rows, scale
        return result

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, result, normaliser = context.saved_tensors
        keys, values = _repeated(key, query), _repeated(value, query)
        of_query = torch.zeros_like(query)
        of_keys, of_values = torch.zeros_like(keys), torch.zeros_like(values)
        for first, last, blocks in context.rows:
            for block in blocks:
                asked = slice(block.first, block.last)
                read = slice(block.start, block.end)
                to_query, to_keys, to_values = _backward(
                    gradient[first:last, :, asked],
                    query[first:last, :, asked],
                    keys[first:last, :, read],
                    values[first:last, :, read],
                    result[first:last, :, asked],
                    normaliser[first:last, :, asked],
                    0.0,
                    block.causal,
                    scale=context.scale,
                )
                of_query[first:last, :, asked] += to_query
                of_keys[first:last, :, read] += to_keys
                of_values[first:last, :, read] += to_values
        summed = partial(
            reduce,
            pattern="row (head times) token width -> row head token width",
            reduction="sum",
            head=key.shape[1],
        )
        return (
            of_query,
            summed(of_keys),
            summed(of_values),
            None,
            None,
        )


def _repeated(keys: Tensor, query: Tensor) -> Tensor:
    """Grouped-query attention: each key head once for every query head that reads it."""
    times = query.shape[1] // keys.shape[1]
    return repeat(keys, "row head token width -> row (head times) token width", times=times)


AttentionInterface.register(NAME, tree_attention)
AttentionMaskInterface.register(NAME, sdpa_mask)
