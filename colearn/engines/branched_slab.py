"""KV caches of rows that continue the same histories: each history is stored once."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .batch_slab import Slab, gather

LEAST = 2**19
"""Minimum number of elements of one layer's keys that copies of the histories would add. For fewer
elements, the saved time is small beside that of a step."""

WASTE = 4
"""Maximum ratio of the new slots of a history's rows to the history's slots. Each row's query is
multiplied with the new keys of all rows of its history, and the products with the other rows' keys
are wasted."""


def branches(histories: Slab, owners: Sequence[int], steps: int) -> int:
    """Number of rows per history if a `BranchedSlab` is faster than copies of the histories for
    rows that continue the rows `owners` of `histories` by `steps` tokens; else 1."""
    each = len(owners) // histories.rows
    if each < 2 or list(owners) != [row // each for row in range(len(owners))]:
        return 1
    keys, used = histories.keys[0], max(histories.lengths)
    copied = (len(owners) - histories.rows) * used * keys.shape[1] * keys.shape[3]
    worthwhile = copied >= LEAST and each * steps <= WASTE * used
    # in half precision, sums in another order differ by more than the update's log-probabilities do
    return each if worthwhile and keys.dtype == torch.float32 else 1


class BranchedSlab(Slab):
    """Row r continues history r // branches. Tensors have one row per history: first the slots of
    the history, then one slot per branch for the first new tokens, then for the second, and so on.
    A forward pass has `branches` new tokens per history, and the mask separates the branches.

    `capacity` is the maximum length of a row.
    """

    def __init__(self, histories: Slab, branches: int, steps: int) -> None:
        """`steps`: maximum number of new tokens per row."""
        every, longest = range(histories.rows), max(histories.lengths)
        super().__init__(len(every) * branches, longest + steps, histories.device)
        self.branches, self._first = branches, longest
        self._copy_lengths(histories, [row // branches for row in range(self.rows)])
        stored = histories.select(every, longest, longest + steps * branches)
        self.keys, self.values = stored.keys, stored.values
        self._begun = stored.device_lengths
        self._used = longest
        slots = torch.arange(stored.capacity, device=self.device)
        new, begun = slots - longest, self._begun[:, None]
        shared = new < 0
        self._positions = stored.device_offsets[:, None] + torch.where(
            shared, slots, begun + new // branches
        )
        own = new % branches == torch.arange(branches, device=self.device)[:, None]
        self._seen = torch.where(shared, (slots < begun)[:, None], own)
        """[histories, branches, slots] Whether a branch attends to a slot."""

    def begin(self, count: int, used: int, *, alike: bool | None = None) -> Tensor:
        self._level = self._used
        self._used += self.branches
        return (self.device_lengths + self.device_offsets).view(-1, self.branches)

    def mask(self, positions: Tensor, visible_from: Tensor) -> Tensor:
        visible = self._seen[:, :, : self._used]
        first = visible_from.view(-1, self.branches, 1)
        return (visible & (self.key_positions()[:, None] >= first))[:, None]

    def key_positions(self) -> Tensor:
        return self._positions[:, : self._used]

    def located(self, rows: Tensor, numbers: Tensor) -> tuple[Tensor, Tensor]:
        begun = self._begun[rows // self.branches]
        new = self._first + (numbers - begun) * self.branches + rows % self.branches
        return rows // self.branches, torch.where(numbers < begun, numbers, new)

    def split(self, rows: Sequence[int], capacity: int, room: int) -> Slab:
        """Copy rows to a slab without branches. This slab stays as it is."""
        return gather(self.handed_out(rows), [0] * len(rows), capacity, self.device, room)
