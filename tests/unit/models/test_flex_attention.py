"""FlexAttention of packed trees against the dense mask of the same trees."""

from __future__ import annotations

import random

import pytest
import torch
from torch.nn.attention.flex_attention import flex_attention
from torch.nn.functional import scaled_dot_product_attention

from colearn.contract.rows import Piece
from colearn.models.flex import BLOCK, LARGEST_DENSE, block_mask, too_large
from colearn.models.tree_mask import TreeMask

CPU = torch.device("cpu")


def tree(rng: random.Random, pieces: int, *, windows: bool) -> tuple[Piece, ...]:
    """A tree of pieces of random lengths under random parents."""
    made: list[Piece] = []
    start = 0
    for number in range(pieces):
        parent = rng.randrange(-1 if number == 0 else 0, number) if number else -1
        length = rng.choice([0, 3, 40, 150, 300])
        above = made[parent] if parent >= 0 else None
        first = 0 if above is None else above.first_position + above.end - above.start
        seen = rng.randrange(first + 2) if windows else 0
        made.append(Piece(start, start + length, parent, first, seen))
        start += length
    return tuple(made)


def batch(seed: int, *, windows: bool = False) -> TreeMask:
    rng = random.Random(seed)
    rows = tuple(tree(rng, 9, windows=windows) for _ in range(3))
    return TreeMask(rows, max(row[-1].end for row in rows) + 17)


def near(mask: TreeMask, window: int | None) -> torch.Tensor:
    """The dense mask, and within `window` positions."""
    dense = mask.dense(CPU)
    if window is None:
        return dense
    positions = torch.zeros((len(mask.pieces), mask.width), dtype=torch.long)
    for row, pieces in enumerate(mask.pieces):
        for piece in pieces:
            count = piece.end - piece.start
            positions[row, piece.start : piece.end] = piece.first_position + torch.arange(count)
    distance = positions[:, None, :, None] - positions[:, None, None, :]
    return dense & ((distance < window) | torch.eye(mask.width, dtype=torch.bool))


@pytest.mark.parametrize("window", [None, 50], ids=["full", "sliding"])
@pytest.mark.parametrize("windows", [False, True], ids=["whole", "windows"])
def test_a_query_sees_what_it_sees_in_the_dense_mask(windows: bool, window: int | None) -> None:
    mask = batch(0, windows=windows)
    made = block_mask(mask, CPU, window)
    rows, tokens = torch.arange(len(mask.pieces)), torch.arange(mask.width)
    seen = made.mask_mod(
        rows[:, None, None], torch.tensor(0), tokens[None, :, None], tokens[None, None]
    )
    dense = near(mask, window)
    assert torch.equal(seen, dense[:, 0])

    # blocks of tokens: those that are left out are not seen, and whole ones are seen whole
    count = -(-mask.width // BLOCK)
    padded = torch.zeros((len(rows), count * BLOCK, count * BLOCK), dtype=torch.bool)
    padded[:, : mask.width, : mask.width] = dense[:, 0]
    each = padded.unflatten(2, (count, BLOCK)).unflatten(1, (count, BLOCK))
    kept = torch.zeros((len(rows), count, count), dtype=torch.bool)
    assert made.full_kv_num_blocks is not None and made.full_kv_indices is not None
    for row in range(len(rows)):
        for query in range(count):
            whole = made.full_kv_indices[row, 0, query, : made.full_kv_num_blocks[row, 0, query]]
            assert each[row, query][:, whole].all()
            partly = made.kv_indices[row, 0, query, : made.kv_num_blocks[row, 0, query]]
            kept[row, query, whole] = kept[row, query, partly] = True
    assert not each.any(4).any(2)[~kept].any()


def small(seed: int, *, windows: bool = False) -> TreeMask:
    """Two rows, as wide as three or four blocks."""
    rng = random.Random(seed)
    rows = tuple(tree(rng, 5, windows=windows) for _ in range(2))
    return TreeMask(rows, max(row[-1].end for row in rows) + 17)


def inputs(rows: int, width: int, dtype: torch.dtype) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn((rows, heads, width, 16), dtype=dtype) for heads in (4, 2, 2)]


def dense_attention(query, key, value, mask):
    return scaled_dot_product_attention(
        query, key, value, attn_mask=mask, scale=0.3, enable_gqa=True
    )


def test_a_dense_mask_is_for_small_batches_alone() -> None:
    side = int(LARGEST_DENSE**0.5)
    small, large = (TreeMask(((Piece(0, n, -1, 0, 0),),), n) for n in (side, side + 1))
    assert (too_large(small), too_large(large)) == (False, True)


def test_it_and_its_gradients_equal_those_of_the_dense_mask(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # torch refuses gradients on the CPU, whose compiled kernel has none; the eager one has them
    monkeypatch.setattr("torch.nn.attention.flex_attention._validate_device", lambda *_: None)
    mask = small(1, windows=True)
    query, key, value = (one.requires_grad_() for one in inputs(2, mask.width, torch.float64))
    blocks = block_mask(mask, CPU, None)
    made = flex_attention(query, key, value, block_mask=blocks, scale=0.3, enable_gqa=True)
    expected = dense_attention(query, key, value, mask.dense(CPU))
    assert torch.allclose(made, expected, atol=1e-10, rtol=0)
    upstream = torch.randn_like(made)
    for one, other in zip(
        torch.autograd.grad(made, (query, key, value), upstream),
        torch.autograd.grad(expected, (query, key, value), upstream),
        strict=True,
    ):
        assert torch.allclose(one, other, atol=1e-10, rtol=0)
