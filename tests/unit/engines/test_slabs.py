"""A slab of KV caches that is split between rows that go on and rows that are held."""

from __future__ import annotations

import torch
from torch import Tensor

from colearn.engines.batch_slab import CachedRow, Slab, gather

CPU = torch.device("cpu")
LENGTHS = (70, 5, 66, 9)


def slab() -> Slab:
    """Two layers of four rows with unequal lengths and random contents."""
    made = Slab(4, 100, CPU)
    shape = (4, 2, made.capacity, 3)
    made.keys = [torch.rand(shape) for _ in range(2)]
    made.values = [torch.rand(shape) for _ in range(2)]
    made.lengths = list(LENGTHS)
    made.offsets = [0, 1, 2, 3]
    return made


def cached(of: Slab, row: int, length: int) -> list[Tensor]:
    """Keys and values of each layer for one history, as a later turn reads them."""
    again = gather([CachedRow(of, row, length, row)], [0], length, CPU)
    return [layer[0, :, :length] for layer in (*again.keys, *again.values)]


def test_held_rows_are_read_as_before_and_rows_that_go_on_have_moved() -> None:
    whole = slab()
    before = {row: cached(whole, row, length) for row, length in enumerate(LENGTHS)}
    taken = whole.split([3, 1], whole.capacity, 2)
    for row in (0, 2):
        torch.testing.assert_close(cached(whole, row, LENGTHS[row]), before[row], rtol=0, atol=0)
    for place, row in enumerate((3, 1)):
        torch.testing.assert_close(cached(taken, place, LENGTHS[row]), before[row], rtol=0, atol=0)
    assert (taken.lengths, taken.offsets) == ([9, 5], [3, 1])


def test_a_split_slab_and_its_new_one_are_together_no_larger_than_before() -> None:
    whole = slab()
    size = whole.bytes
    taken = whole.split([3, 1], whole.capacity, 2)
    assert taken.bytes == size / 2
    # of the 128 slots the held rows have the 70 of the longest one
    assert whole.bytes == size / 2 * 70 / 128


def test_nothing_is_left_of_a_slab_whose_rows_have_all_moved() -> None:
    whole = slab()
    taken = whole.split([0, 1, 2, 3], 200, 4)
    assert (whole.bytes, taken.capacity) == (0, 256)
