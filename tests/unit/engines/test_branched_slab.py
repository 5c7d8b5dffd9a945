"""Slabs whose rows share histories: each history once, then the new tokens of its rows in turn."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from colearn.engines.batch_slab import CachedRow, Slab, gather
from colearn.engines.branched_slab import BranchedSlab, branches

CPU = torch.device("cpu")


def histories(width: int = 3) -> Slab:
    """One layer, two histories of 5 and 3 tokens; the second has lost its first two positions."""
    made = Slab(2, 64, CPU)
    made.keys, made.values = [torch.rand(2, 1, 64, width)], [torch.rand(2, 1, 64, width)]
    made.lengths, made.offsets = [5, 3], [0, 2]
    return made


def grown() -> tuple[BranchedSlab, list[Tensor]]:
    """Two rows for each history with two new tokens each, and the keys of each row's tokens."""
    before = histories()
    slab = BranchedSlab(before, 2, 4)
    new = [torch.rand(2, 1, 2, 3) for _ in range(2)]
    for token in new:
        slab.begin(1, max(slab.lengths) + 1)
        slab.update(token, -token, 0)
        slab.grow()
    rows = []
    for row in range(4):
        history, branch = divmod(row, 2)
        own = [token[history, :, branch : branch + 1] for token in new]
        rows.append(torch.cat([before.keys[0][history, :, : (5, 3)[history]], *own], 1))
    return slab, rows


def keys_of(row: CachedRow, cut: int = 0) -> Tensor:
    return gather([row], [cut], row.length, CPU).keys[0][0, :, : row.length - cut]


def test_a_row_is_read_as_its_history_and_its_own_tokens() -> None:
    slab, expected = grown()
    rows = slab.handed_out(range(4))
    assert [(row.length, row.offset) for row in rows] == [(7, 0), (7, 0), (5, 2), (5, 2)]
    for row, keys in zip(rows, expected, strict=True):
        assert torch.equal(keys_of(row), keys)


@pytest.mark.parametrize("cut", [1, 4])
def test_a_cut_may_fall_into_the_history_and_into_the_own_tokens(cut: int) -> None:
    slab, expected = grown()
    assert torch.equal(keys_of(slab.handed_out([3])[0], cut), expected[3][:, cut:])


def test_a_new_token_sees_its_history_from_the_first_visible_position_and_its_own_branch() -> None:
    slab, _ = grown()
    positions = slab.begin(1, 8)
    assert positions.tolist() == [[7, 7], [7, 7]]
    mask = slab.mask(positions, torch.tensor([[0], [2], [0], [4]]))
    assert mask.shape == (2, 1, 2, 5 + 3 * 2)
    assert mask[:, 0].int().tolist() == [
        [[1, 1, 1, 1, 1, 1, 0, 1, 0, 1, 0], [0, 0, 1, 1, 1, 0, 1, 0, 1, 0, 1]],
        # positions 2 to 4, of which the second branch sees the last; two slots are unused
        [[1, 1, 1, 0, 0, 1, 0, 1, 0, 1, 0], [0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 1]],
    ]


def test_keys_have_the_positions_of_their_tokens() -> None:
    slab, _ = grown()
    first, second = slab.key_positions().tolist()
    assert first == [0, 1, 2, 3, 4, 5, 5, 6, 6]
    assert (second[:3], second[5:]) == ([2, 3, 4], [5, 5, 6, 6])


def test_rows_that_move_have_their_caches_alone_and_the_others_stay() -> None:
    slab, expected = grown()
    (left,) = slab.handed_out([1])
    taken = slab.split([2, 0], 100, 3)
    assert (type(taken), taken.rows, taken.room, taken.capacity) == (Slab, 2, 3, 128)
    for row, keys in zip(taken.handed_out([0, 1]), (expected[2], expected[0]), strict=True):
        assert torch.equal(keys_of(row), keys)
    assert torch.equal(keys_of(left), expected[1])


def test_each_history_takes_memory_once() -> None:
    slab = BranchedSlab(histories(), 8, 63)
    # keys and values of two histories in float32: 5 + 8 * 63 slots, in blocks of 64
    assert slab.bytes == 2 * 4 * 2 * 512 * 3


@pytest.mark.parametrize(
    ("owners", "steps", "expected"),
    [
        ([0, 0, 0, 1, 1, 1], 6, 3),  # 4 rows more, of 5 * 2**15 elements
        ([0, 0, 0, 1, 1, 1], 7, 1),  # 21 new slots are more than 4 * 5
        ([0, 0, 1, 1], 6, 1),  # 2 rows more
        ([0, 0, 0, 0, 1, 1], 3, 1),
        ([0, 1, 0, 1, 0, 1], 3, 1),
        ([1], 3, 1),
    ],
)
def test_histories_are_shared_by_equal_numbers_of_rows_if_copies_are_large(
    owners: list[int], steps: int, expected: int
) -> None:
    assert branches(histories(2**15), owners, steps) == expected
