"""A pass over a packed tree that is too large for a dense mask, on the CPU and in name only."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask

from colearn.contract.rows import Piece
from colearn.models import flex
from colearn.models.tree_mask import TreeMask

from . import costs
from .decoding_cases import team

LENGTHS = (500, 420, 380, 420, 401)
"""Of a history and its four branches: 2,121 tokens, squared above `flex.LARGEST_DENSE`."""


def by_queries(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    block_mask: BlockMask,
    scale: float,
    enable_gqa: bool,
) -> Tensor:
    """Stands in for the compiled kernel, which a device in name only cannot run."""
    assert enable_gqa
    times = query.shape[1] // key.shape[1]
    keys, values = key.repeat_interleave(times, 1), value.repeat_interleave(times, 1)
    rows = torch.arange(query.shape[0], device=query.device)[:, None, None]
    tokens = torch.arange(query.shape[2], device=query.device)
    parts = []
    for start in range(0, query.shape[2], 100):
        asked = tokens[start : start + 100]
        seen = block_mask.mask_mod(rows, rows, asked[None, :, None], tokens[None, None])
        scores = (query[:, :, asked] @ keys.transpose(-1, -2)) * scale
        weights = scores.masked_fill(~seen[:, None], -torch.inf).softmax(-1)
        parts.append(weights @ values)
    return torch.cat(parts, 2)


def large_tree(device: str, compiled: bool = False) -> dict[str, Any]:
    """The last hidden states of a tree, the gradients of two weights, and the largest tensors of
    tokens squared. compiled: whether the device runs the compiled kernel, as no nominal one can."""
    if device != "cpu" and not compiled:
        flex.kernel = lambda: by_queries
    pieces = [Piece(0, LENGTHS[0], -1, 0, 0)]
    for length in LENGTHS[1:]:
        start = pieces[-1].end
        pieces.append(Piece(start, start + length, 0, LENGTHS[0], 0))
    width = pieces[-1].end
    positions = [
        n for p in pieces for n in range(p.first_position, p.first_position + p.end - p.start)
    ]
    base, _ = team(0, "float32", layers=2)
    base.to(device)
    ids = torch.tensor([[number * 7 % 250 for number in range(width)]], device=device)
    mask = TreeMask((tuple(pieces),), width)
    with costs.counted() as counts:
        hidden = base.hidden(ids, position_ids=torch.tensor([positions], device=device), mask=mask)
        hidden.square().mean().backward()
    attention = base.model.get_decoder().layers[0].self_attn
    return {
        "width": width,
        "hidden": hidden.detach().cpu().flatten()[::97].tolist(),
        "gradients": [
            weight.grad.cpu().flatten()[::31].tolist()
            for weight in (attention.q_proj.weight, attention.v_proj.weight)
        ],
        "squares": dict(counts.squares),
    }
