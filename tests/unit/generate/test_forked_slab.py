"""Slabs whose rows share histories: the same caches as copies, in less memory."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from colearn.generate.forked_slab import ForkedSlab
from colearn.generate.kv_cache import CachedRow, Slab, gather

CPU = torch.device("cpu")
OWNERS = (0, 0, 0, 1, 1, 1)


def histories() -> Slab:
    """One layer, two histories of 5 and 3 tokens; the second has lost its first two positions."""
    made = Slab(2, 64, CPU)
    made.keys, made.values = [torch.rand(2, 1, 64, 3)], [torch.rand(2, 1, 64, 3)]
    made.lengths, made.offsets = [5, 3], [0, 2]
    return made


def said(slab: Slab, tokens: int) -> list[Tensor]:
    """Every row says `tokens` random tokens; returns their keys [R, 1, tokens, 3]."""
    news = []
    for number in range(tokens):
        slab.begin(1, number + 1)
        news.append(torch.rand(slab.rows, 1, 1, 3))
        slab.update(news[-1], news[-1], 0)
        slab.grow()
    return news


def keys_of(cached: CachedRow) -> Tensor:
    return gather([cached], [0], cached.length, CPU).keys[0][0, :, : cached.length]


def forks() -> tuple[ForkedSlab, list[Tensor]]:
    """Six forks and the keys of their histories with two tokens of their own."""
    shared = histories()
    slab = ForkedSlab(shared, OWNERS, used=5, capacity=8)
    own = torch.cat(said(slab, 2), 2)
    before = [shared.keys[0][owner, :, : shared.lengths[owner]] for owner in OWNERS]
    return slab, [torch.cat([a, b], 1) for a, b in zip(before, own, strict=True)]


def check(slab: Slab, rows: list[CachedRow], expected: list[Tensor]) -> None:
    for row, keys in zip(rows, expected, strict=True):
        torch.testing.assert_close(keys_of(row), keys, rtol=0, atol=0)


def test_a_row_is_read_as_its_history_and_its_own_tokens() -> None:
    slab, expected = forks()
    rows = slab.handed_out(range(6))
    assert [(row.length, row.offset, row.end) for row in rows] == [(7, 0, 7)] * 3 + [(5, 2, 7)] * 3
    check(slab, rows, expected)


def test_a_cut_may_fall_into_the_history_and_into_the_own_tokens() -> None:
    slab, expected = forks()
    rows = slab.handed_out([0, 3])
    again = gather(rows, [6, 2], 64, CPU)
    assert (again.lengths, again.offsets) == ([1, 3], [6, 4])
    torch.testing.assert_close(again.keys[0][0, :, :1], expected[0][:, 6:])
    torch.testing.assert_close(again.keys[0][1, :, :3], expected[3][:, 2:])


def test_rows_that_go_on_and_rows_that_are_held_are_read_as_before() -> None:
    slab, expected = forks()
    held = slab.handed_out([0, 3])
    taken = slab.split([1, 2, 4, 5], 8, 4)
    assert isinstance(taken, ForkedSlab)
    check(slab, held, [expected[0], expected[3]])
    check(taken, taken.handed_out(range(4)), [expected[row] for row in (1, 2, 4, 5)])


@pytest.mark.parametrize("left", [(1, 5), (0, 1, 2)], ids=["one of each", "one group of two"])
def test_what_few_rows_share_is_copied(left: tuple[int, ...]) -> None:
    slab, expected = forks()
    few = slab.split(left, 8, len(left))
    assert type(few) is Slab
    assert few.capacity >= 5 + 8
    check(few, few.handed_out(range(len(left))), [expected[row] for row in left])


def test_rows_in_another_order_keep_their_own_history() -> None:
    slab, expected = forks()
    kept = slab.reduce([5, 1, 2, 3])  # the last row takes the place of the first that leaves
    assert isinstance(kept, ForkedSlab)
    check(kept, kept.handed_out(range(4)), [expected[row] for row in (5, 1, 2, 3)])


def test_forks_need_the_memory_of_a_history_once() -> None:
    slab, _ = forks()
    slot = 2 * 3 * 4  # keys and values of three float32
    assert slab.bytes == slot * (2 * 64 + 6 * 64)
    assert slab.whole(range(6)).bytes == slot * 6 * 128  # 5 and 64, in blocks of 64


@pytest.mark.parametrize("first", [0, 3])
def test_a_row_sees_its_history_from_its_window_on(first: int) -> None:
    slab, _ = forks()
    positions = slab.begin(1, 3)
    mask = slab.mask(positions, torch.full((6, 1), first))
    seen = (mask.added[:, 0, 0] == 0)[:, : 5 + 3]  # type: ignore[attr-defined]
    # slots 0 to 4 of the history, then 5 to 7 of the row; the second history begins at position 2
    one = [n >= first for n in range(5)] + [True] * 3
    other = [2 + n >= first for n in range(3)] + [False] * 2 + [True] * 3
    assert seen.tolist() == [one] * 3 + [other] * 3


def test_rows_are_grouped_anew_when_some_have_left() -> None:
    slab, _ = forks()
    slab.mask(slab.begin(1, 3), torch.zeros((6, 1), dtype=torch.long))
    kept = slab.reduce([5, 1, 2, 3])
    mask = kept.mask(kept.begin(1, 3), torch.zeros((4, 1), dtype=torch.long))
    assert mask.members.tolist() == [1, 2, 0, 3]  # type: ignore[attr-defined]
    assert mask.places.tolist() == [2, 0, 1, 3]  # type: ignore[attr-defined]
