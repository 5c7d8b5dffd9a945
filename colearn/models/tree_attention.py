"""Block attention over packed trees: computes only the visible query-key pairs, without a mask.

Each block is one call of torch's fused kernel. The outputs of a query's blocks are merged by their
log-sum-exp, and the backward kernels run block by block on the merged result. Ring attention (Liu
et al. 2023, arXiv 2310.01889) merges the outputs of several devices in the same way.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from einops import rearrange, reduce, repeat
from torch import Tensor
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.autograd.function import once_differentiable
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from .flex import FlexMask, attend
from .tree_mask import Rows, TreeMask

NAME = "colearn_tree"
"""Name of the attention implementation, set in a model's config while it is in memory."""

_CALL = 2**19
"""Fixed cost of calling the kernel for one block, in units of one multiplication in dense
attention. A query-key pair costs heads * head size multiplications. Measured on
several trees on two CPU cores."""

_LARGE_KEYS = 2**18
"""Number of elements of keys whose copies take time."""

_forward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
_backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward


class Carrier(Tensor):
    """An empty 4-d mask tensor that carries a batch's blocks through transformers to the attention
    function."""

    rows: tuple[Rows, ...]

    @staticmethod
    def of(rows: tuple[Rows, ...]) -> Carrier:
        with unset_fake_temporarily():  # a dry run: fake tensors cannot be subclassed again
            carrier = torch.empty((1, 1, 0, 0), dtype=torch.bool).as_subclass(Carrier)
        carrier.rows = rows
        return carrier


def by_blocks(mask: TreeMask, device: torch.device, width: int) -> Carrier | None:
    """Return a batch's blocks as a mask. Returns None if the device does not support blocks or a
    dense mask is faster. `width` is heads * head size."""
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
    """Implements transformers' attention interface: block attention for a `Carrier`, FlexAttention
    for a `FlexMask`, else sdpa.

    `query` [B, heads, T, D], `key` and `value` [B, key heads, T, D]; the result is
    [B, T, heads, D].
    """
    if not isinstance(attention_mask, Carrier | FlexMask):
        dropout = settings.get("dropout") or None  # 0 outside of training
        extras = settings.get("softcap"), settings.get("position_bias"), dropout
        if attention_mask is not None and extras == (None, None, None) and _few(query, key):
            return _grouped(query, key, value, attention_mask, scaling), None
        return sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, **settings
        )
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    kind = query.device.type
    if torch.is_autocast_enabled(kind):  # rotary embeddings leave queries and keys in float32
        compute = torch.get_autocast_dtype(kind)
        query, key, value = query.to(compute), key.to(compute), value.to(compute)
    if isinstance(attention_mask, FlexMask):
        attended = attend(query, key, value, attention_mask.blocks, scale)
        return attended.transpose(1, 2).contiguous(), None
    merged: Tensor = _Blocks.apply(query, key, value, attention_mask.rows, scale)
    return rearrange(merged, "row head token width -> row token head width"), None


def _few(query: Tensor, key: Tensor) -> bool:
    """Whether there is one new token per row, or the copies of the keys that `_grouped` saves are
    large and larger than its copies of the mask."""
    tokens = query.shape[2]
    return tokens == 1 or (tokens <= key.shape[1] * key.shape[3] and key.numel() >= _LARGE_KEYS)


def _grouped(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scale: float | None
) -> Tensor:
    """Attention [B, T, heads, D] of a few new tokens per row. Heads that share keys are passed as
    several queries of one head. Otherwise, transformers copies all keys and values, which takes six
    times as long on a GPU as the attention of one token."""
    rows, heads, width, size = query.shape
    times = heads // key.shape[1]
    grouped = query.reshape(rows, key.shape[1], times * width, size)
    if width > 1:
        mask = mask.repeat(1, 1, times, 1)
    attended = torch.nn.functional.scaled_dot_product_attention(
        grouped, key, value, attn_mask=mask, scale=scale
    )
    return attended.reshape(rows, heads, width, value.shape[-1]).transpose(1, 2)


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
        # in the layout of the output projection: [B, T, heads, D]
        exact = torch.promote_types(query.dtype, torch.float32)
        merged = query.new_zeros((batch, width, heads, size), dtype=exact).transpose(1, 2)
        normaliser = query.new_zeros((batch, heads, width), dtype=exact)
        for first, last, blocks in rows:
            for block in blocks:
                queried = slice(block.first, block.last)
                columns = slice(block.start, block.end)
                part, logsum = _forward(
                    query[first:last, :, queried],
                    keys[first:last, :, columns],
                    values[first:last, :, columns],
                    0.0,
                    block.causal,
                    scale=scale,
                )
                before = normaliser[first:last, :, queried]
                output = merged[first:last, :, queried]
                if block.causal:  # each token's first block
                    output.copy_(part)
                    before.copy_(logsum)
                else:
                    # the second softmax's share is a logistic function of the log-sum-exps
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
        of_query, of_keys, of_values = (
            torch.zeros_like(tensor, dtype=normaliser.dtype) for tensor in (query, keys, values)
        )
        for first, last, blocks in context.rows:
            for block in blocks:
                queried = slice(block.first, block.last)
                columns = slice(block.start, block.end)
                to_query, to_keys, to_values = _backward(
                    gradient[first:last, :, queried],
                    query[first:last, :, queried],
                    keys[first:last, :, columns],
                    values[first:last, :, columns],
                    result[first:last, :, queried],
                    normaliser[first:last, :, queried],
                    0.0,
                    block.causal,
                    scale=context.scale,
                )
                of_query[first:last, :, queried] += to_query
                of_keys[first:last, :, columns] += to_keys
                of_values[first:last, :, columns] += to_values
        summed = partial(
            reduce,
            pattern="row (head times) token width -> row head token width",
            reduction="sum",
            head=key.shape[1],
        )
        gradients = of_query, summed(of_keys), summed(of_values)
        return (*(gradient.to(query.dtype) for gradient in gradients), None, None)


def _repeated(keys: Tensor, query: Tensor) -> Tensor:
    """Grouped-query attention: repeat each key head for its query heads."""
    times = query.shape[1] // keys.shape[1]
    return repeat(keys, "row head token width -> row (head times) token width", times=times)


AttentionInterface.register(NAME, tree_attention)
AttentionMaskInterface.register(NAME, sdpa_mask)
