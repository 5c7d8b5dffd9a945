"""KV caches of forks: each row holds what it has said itself, and refers to the history it shares.

The histories are rows of another slab, which is not written any more. K forks of a history need its
memory once, not K times, and no copy is made of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from colearn.models.base import Base
from colearn.models.fork_attention import ForkMask, in_groups

from .kv_cache import CachedRow, Slab, gather

WORTHWHILE = 2**19
"""Elements of a layer's keys that forks share, from which reading them once is faster than reading
copies. Measured by `benchmarks/shared_history.py`."""


def worthwhile_to_share(base: Base, forks: int, elements: int) -> bool:
    """Whether rows that continue other rows' histories, `forks` of them, should not copy these;
    `elements` are those of the longest history's keys in one layer."""
    return base.shares_histories and forks * elements >= WORTHWHILE


def fork(source: Slab, owners: Sequence[int], used: int, reserve: int, base: Base) -> Slab:
    """Rows that continue the rows `owners` of `source`, with `reserve` free slots each; `used` is
    the length of the longest history. The source must not be written afterwards."""
    keys = source.keys[0]
    elements = used * keys.shape[1] * keys.shape[3]
    if worthwhile_to_share(base, len(owners) - source.rows, elements):
        return ForkedSlab(source, owners, used, reserve)
    return source.select(owners, used, used + reserve)


class ForkedSlab(Slab):
    """`lengths` and slots are those of the rows' own tokens; `offsets` are where they begin."""

    def __init__(
        self,
        histories: Slab,
        owners: Sequence[int],
        used: int,
        capacity: int,
        room: int | None = None,
    ) -> None:
        super().__init__(len(owners), capacity, histories.device, room)
        self.histories, self.owners, self.used = histories, list(owners), used
        """The slab of the shared histories, each row's history and the longest one's length."""
        self.offsets = [histories.lengths[owner] + histories.offsets[owner] for owner in owners]
        self._groups: tuple[Tensor, Tensor] | None = None
        self._owning: Tensor
        """[R] The owners, on the device with the groups."""
        self._layer = 0

    @property
    def bytes(self) -> int:
        return super().bytes + self.histories.bytes

    def update(
        self, keys: Tensor, values: Tensor, layer: int, *given: object, **settings: object
    ) -> tuple[Tensor, Tensor]:
        self._layer = layer
        return super().update(keys, values, layer, *given, **settings)

    def mask(self, positions: Tensor, visible_from: Tensor) -> Tensor:
        """As `Slab.mask` for one new token per row, over the history's keys and the row's own."""
        if self._groups is None:
            members, places = in_groups(self.owners, self.histories.rows)
            self._groups = self._integers(members), self._integers(places)
            self._owning = self._integers(self.owners)
        own, owning = super().mask(positions, visible_from), self._owning
        slots = torch.arange(self.used, device=self.device)
        first = visible_from - self.histories.device_offsets[owning][:, None]
        shared = (slots < self.histories.device_lengths[owning][:, None]) & (slots >= first)
        visible = torch.cat([shared[:, None, None], own], -1)
        return ForkMask.of(self._read, *self._groups, visible)

    def handed_out(self, places: Sequence[int]) -> list[CachedRow]:
        own = super().handed_out(places)
        shared = self.histories.handed_out([self.owners[place] for place in places])
        return [
            CachedRow(self, row.row, history.length + row.length, history.offset)
            for row, history in zip(own, shared, strict=True)
        ]

    def segments(self, row: CachedRow) -> Iterator[tuple[Slab, int, int, int]]:
        place = self.place(row.row)
        owner = self.owners[place]
        shared = self.histories.lengths[owner]
        yield self.histories, owner, 0, shared
        yield self, place, shared, row.length - shared

    def split(self, rows: Sequence[int], capacity: int, room: int) -> Slab:
        gone, owners = set(rows), self.owners
        own = super().split(rows, capacity, room)
        self.owners = [owner for row, owner in enumerate(owners) if row not in gone]
        self._groups = None
        taken = ForkedSlab(
            self.histories, [owners[row] for row in rows], self.used, own.capacity, own.room
        )
        taken.keys, taken.values, taken.lengths = own.keys, own.values, own.lengths
        return taken._unless_few()

    def reduce(self, order: Sequence[int]) -> Slab:
        super().reduce(order)
        self.owners, self._groups = [self.owners[row] for row in order], None
        return self._unless_few()

    def whole(self, rows: Sequence[int]) -> Slab:
        """A slab with copies of the histories of `rows`."""
        room = self.used + self.capacity
        return gather(self.handed_out(rows), [0] * len(rows), room, self.device)

    def _unless_few(self) -> Slab:
        """Where no more rows than histories are left, or most places of the groups are empty,
        copies cost less."""
        most = max(map(self.owners.count, set(self.owners)), default=0)
        if self.rows <= self.histories.rows or 2 * self.rows <= self.histories.rows * most:
            return self.whole(range(self.rows))
        return self

    def _read(self) -> tuple[Tensor, Tensor]:
        shared = (slice(0, self.histories.rows), slice(None), slice(0, self.used))
        keys, values = self.histories.keys, self.histories.values
        return keys[self._layer][shared], values[self._layer][shared]
