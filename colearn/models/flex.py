"""Attention over packed trees on accelerators: FlexAttention, and its block mask of a batch.

The pattern of T tokens is stored as three numbers for each token and one bit for each pair of
segments, so that no T x T tensor is allocated. From the segments, the host computes which pairs of
token blocks are partly visible and which are completely visible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, flex_attention

from .tree_mask import PieceRun, TreeMask, segments_of

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
    settings: dict[str, Any] = {"scale": scale, "enable_gqa": True}
    attended: Tensor = kernel()(query, key, value, block_mask=blocks, **settings)
    return attended


@cache
def kernel() -> Any:
    """Return the compiled FlexAttention kernel; an uncompiled kernel would hold all scores in
    memory at once."""
    return torch.compile(flex_attention)


BLOCK = 128
"""Number of tokens in a block: FlexAttention's default block size."""
Visible = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def block_mask(mask: TreeMask, device: torch.device, window: int | None) -> BlockMask:
    """Build the block mask of a batch, which is the same for all heads. `window`: a token attends
    only to keys at a distance of less than `window` positions."""
    rows = [segments_of(pieces) for pieces in mask.pieces]
    count = -(-mask.width // BLOCK)
    pairs = [_pairs(row, count, window) for row in rows]
    partly = np.stack([any_visible & ~full for any_visible, full in pairs])
    wholly = np.stack([full for _, full in pairs])
    return BlockMask.from_kv_blocks(
        *_listed(partly, device),
        *_listed(wholly, device),
        BLOCK_SIZE=BLOCK,
        mask_mod=visible(rows, mask.width, device, window),
        seq_lengths=(mask.width, mask.width),
    )


def visible(
    rows: Sequence[Sequence[PieceRun]], width: int, device: torch.device, window: int | None
) -> Visible:
    """Return a function that decides whether a row's query attends to a key. The key must belong to
    an ancestor within the query's window. Padding attends to itself."""
    longest = max(map(len, rows), default=0)
    above = np.zeros((len(rows), longest + 1, longest + 1), dtype=bool)  # the last one is padding
    segment = np.full((len(rows), width), longest, dtype=np.int32)
    position, first = np.zeros_like(segment), np.zeros_like(segment)
    for row, segments in enumerate(rows):
        for number, run in enumerate(segments):
            if run.parent >= 0:
                above[row, number] = above[row, run.parent]
            above[row, number, number] = True
            tokens = slice(run.start, run.end)
            segment[row, tokens] = number
            position[row, tokens] = run.first_position + np.arange(run.end - run.start)
            first[row, tokens] = run.visible_from
    ancestors, of, at, earliest = (
        torch.from_numpy(array).to(device) for array in (above, segment, position, first)
    )

    def sees(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        allowed = ancestors[batch, of[batch, query], of[batch, key]]
        allowed = allowed & (at[batch, key] <= at[batch, query])
        allowed = allowed & (at[batch, key] >= earliest[batch, query])
        if window is not None:
            allowed = allowed & (at[batch, query] - at[batch, key] < window)
        return allowed | (query == key)

    return sees


def _pairs(
    segments: Sequence[PieceRun], count: int, window: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return two bool arrays [query blocks, key blocks] of a row: block pairs in which some token
    pairs may be visible, and block pairs in which all token pairs are visible. The diagonal of the
    first array is set, because padding attends to itself.
    """
    numbers = np.arange(count)
    visible_pairs = np.zeros((count, count), dtype=np.int64)
    any_visible = np.eye(count, dtype=bool)
    for segment in segments:
        queries = _overlap(segment.start, segment.end, numbers)
        own_pairs = np.outer(queries, queries)
        any_visible |= (own_pairs > 0) & (numbers[:, None] >= numbers)
        if segment.visible_from <= segment.first_position:
            visible_pairs += np.where(numbers[:, None] > numbers, own_pairs, 0)
            visible_pairs[numbers, numbers] += queries * (queries + 1) // 2
        above = segment.parent
        while above >= 0:
            ancestor = segments[above]
            start = ancestor.start + max(0, segment.visible_from - ancestor.first_position)
            pairs = np.outer(queries, _overlap(start, ancestor.end, numbers))
            any_visible |= pairs > 0
            visible_pairs += pairs
            above = ancestor.parent
    full = visible_pairs == BLOCK * BLOCK
    return any_visible, full if window is None else np.zeros_like(full)


def _overlap(start: int, end: int, numbers: np.ndarray) -> np.ndarray:
    """Number of tokens of the range [start, end) that are in each block."""
    return np.clip(
        np.minimum(end, (numbers + 1) * BLOCK) - np.maximum(start, numbers * BLOCK), 0, None
    )


def _listed(pairs: np.ndarray, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the number [B, 1, query blocks] and the indices [B, 1, query blocks, key blocks] of
    the selected key blocks of each query block. Indices of selected key blocks come first."""
    number = pairs.sum(-1, dtype=np.int32)
    order = np.argsort(~pairs, axis=-1, kind="stable").astype(np.int32)
    return (
        torch.from_numpy(number[:, None]).to(device),
        torch.from_numpy(order[:, None]).to(device),
    )
