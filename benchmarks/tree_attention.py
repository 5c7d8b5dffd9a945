"""Attention over packed trees: blocks against the dense mask, forward and backward, by tree.

    OMP_NUM_THREADS=1 python benchmarks/tree_attention.py

A tree has K actions at each of its turns; every piece but the first is one action with the
observation after it. Prints milliseconds for one layer (minimum of `--rounds`, interleaved), the
ratio, how many query-key pairs the blocks save for each call, and which one colearn takes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from colearn.contract.rows import Piece
from colearn.models.tree_attention import Carrier, by_blocks, tree_attention
from colearn.models.tree_mask import TreeMask

TREES = [
    (2, 1, 16),
    (4, 1, 16),
    (2, 2, 16),
    (4, 2, 8),
    (4, 2, 16),
    (4, 2, 64),
    (4, 3, 16),
    (8, 2, 32),
]
SHAPES = [(8, 4, 64), (4, 2, 16)]


def tree(k: int, turns: int, length: int) -> tuple[Piece, ...]:
    """A full tree with pieces of `length` tokens, level after level."""
    pieces = [Piece(0, length, -1, 0, 0)]
    level = [0]
    for turn in range(turns):
        below = []
        for parent in level:
            for _ in range(k):
                start = pieces[-1].end
                below.append(len(pieces))
                pieces.append(Piece(start, start + length, parent, length * (turn + 1), 0))
        level = below
    return tuple(pieces)


def milliseconds(attend: Callable[..., Tensor], *inputs: Tensor) -> float:
    fresh = [one.clone().requires_grad_() for one in inputs]
    started = time.perf_counter()
    attend(*fresh).sum().backward()
    return 1e3 * (time.perf_counter() - started)


def compare(mask: TreeMask, heads: int, key_heads: int, size: int, rounds: int) -> str:
    """A line's figures for one layer of this shape."""
    assert mask.rows is not None
    dense, carrier = mask.dense(torch.device("cpu")), Carrier.of(mask.rows)
    query = torch.randn(1, heads, mask.width, size)
    key, value = (torch.randn(1, key_heads, mask.width, size) for _ in range(2))

    def blocks(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return tree_attention(torch.nn.Module(), q, k, v, carrier)[0]

    def masked(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        wide = [one.repeat_interleave(heads // key_heads, 1) for one in (k, v)]
        return scaled_dot_product_attention(q, *wide, attn_mask=dense).transpose(1, 2)

    times = [
        [milliseconds(one, query, key, value) for one in (masked, blocks)]
        for _ in range(rounds + 1)
    ][1:]
    slow, fast = (min(column) for column in zip(*times, strict=True))
    calls = len(mask.rows[0].blocks)
    saved = (mask.width**2 - sum(block.pairs for block in mask.rows[0].blocks)) / calls
    taken = "dense" if by_blocks(mask, query.device, heads * size) is None else "blocks"
    return f"{slow:8.2f} {fast:9.2f} {slow / fast:5.2f} {saved:10.0f} {taken}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    print("K turns piece tokens heads size | dense ms blocks ms ratio saved/call taken")
    for heads, key_heads, size in SHAPES:
        for k, turns, length in TREES:
            pieces = tree(k, turns, length)
            mask = TreeMask((pieces,), pieces[-1].end)
            figures = compare(mask, heads, key_heads, size, rounds)
            print(f"{k} {turns:5d} {length:5d} {mask.width:6d} {heads:5d} {size:4d} | {figures}")


if __name__ == "__main__":
    main()
