"""The rows that decode: the pairs of growing histories, in one store that grows and shrinks."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from colearn.generate.cache import BLOCK, CachedRow, Slab


class RunningSlab(Slab):
    """The first `rows` rows of a larger store are in use, without gaps, so a step computes nothing
    for rows that have left: the last row takes the place of one that leaves."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(0, 0, device)
        self.room = 0
        """Rows that are allocated."""

    @property
    def bytes(self) -> int:
        return slab_bytes(self)

    def join(self, source: Slab, rows: Sequence[int]) -> None:
        """Append copies of `rows` of `source`; a row given twice is a fork."""
        lengths, offsets = source.lengths[list(rows)], source.offsets[list(rows)]
        first, count = self.rows, self.rows + len(rows)
        longest = int(torch.cat([self.lengths, lengths]).max())
        if count > self.room or longest > self.capacity:
            room = self.room if count <= self.room else max(count, self.room + self.room // 4)
            self._allocate(room, max(longest, self.capacity), source)
        for olds, news in ((source.keys, self.keys), (source.values, self.values)):
            for old, new in zip(olds, news, strict=True):
                for number, row in enumerate(rows):
                    length = int(lengths[number])
                    new[first + number, :, :length] = old[row, :, :length]
        self.lengths = torch.cat([self.lengths, lengths])
        self.offsets = torch.cat([self.offsets, offsets])
        self.rows = count

    def leave(self, row: int) -> None:
        """Free a row; the last one moves to its number."""
        last = self.rows - 1
        if row != last:
            length = int(self.lengths[last])
            for layer in (*self.keys, *self.values):
                layer[row, :, :length] = layer[last, :, :length]
            self.lengths[row], self.offsets[row] = self.lengths[last], self.offsets[last]
        self.rows = last
        self.lengths, self.offsets = self.lengths[:last], self.offsets[:last]
        if not self.rows:
            self.clear()

    def fit(self, slots: int) -> bool:
        """Make room for rows of `slots` slots; whether anything was moved."""
        if slots <= self.capacity:
            return False
        self._allocate(self.room, slots, self)
        return True

    def shrink(self) -> None:
        """Give memory back where most of it is unused."""
        longest = int(self.lengths.max()) if self.rows else 0
        if self.rows and (4 * self.rows <= self.room or 4 * longest + 4 * BLOCK <= self.capacity):
            self._allocate(min(self.room, 2 * self.rows), longest, self)

    def clear(self) -> None:
        self.rows = self.room = self.capacity = 0
        self.keys, self.values = [], []
        self.lengths, self.offsets = self.lengths[:0], self.offsets[:0]

    def held(self, row: int) -> CachedRow:
        """Where a row's pairs lie; good until the next join or leave."""
        return CachedRow(self, row, int(self.lengths[row]), int(self.offsets[row]))

    def _allocate(self, room: int, slots: int, like: Slab) -> None:
        """Move to a store of `room` rows and some more than `slots` slots, with `like`'s layers."""
        capacity = -(-(slots + slots // 4 + 1) // BLOCK) * BLOCK
        used = int(self.lengths.max()) if self.rows else 0
        for name in ("keys", "values"):
            olds, moved = getattr(self, name), []
            for number, shape in enumerate(getattr(like, name)):
                new = shape.new_zeros(room, shape.shape[1], capacity, shape.shape[3])
                if olds:
                    new[: self.rows, :, :used] = olds[number][: self.rows, :, :used]
                moved.append(new)
            setattr(self, name, moved)
        self.room, self.capacity = room, capacity


def slab_bytes(slab: Slab) -> int:
    """Memory of a slab's pairs."""
    return sum(layer.numel() * layer.element_size() for layer in (*slab.keys, *slab.values))
