"""The rows that decode together: they join between two steps, and leave when they have ended."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from colearn.models.base import Base

from .decoding_row import DecodingRow
from .kv_cache import BLOCK, CachedRow, Slab


class Running:
    """Rows and their KV caches, in one slab that grows and shrinks.

    A row that leaves frees its place for the last one, so a step computes nothing for it. Where its
    cache is held by somebody, it stays where it is: it is computed beside the others and ignored,
    and when half of the rows are such, the others move to a slab of their own.
    """

    def __init__(self, base: Base) -> None:
        self.base = base
        self.clear()

    def clear(self) -> None:
        self.rows: list[DecodingRow] = []
        self.drawn = torch.zeros(0, dtype=torch.long, device=self.base.device)
        """[rows] The token that each drew last, which is not in its cache yet."""
        self._slab = Slab(0, 0, self.base.device)
        self._places: list[int] = []
        """The slab's row of each row."""
        self._adapters: list[str | None] = []
        self._visible: list[int] = []
        """Both of the slab's rows."""
        self._held: Tensor | None = None
        """The places, where the slab holds rows of others too."""
        self._sees: Tensor | None = None
        """[slab's rows, 1]: `_visible`; made when it is needed."""

    @property
    def bytes(self) -> int:
        return self._slab.bytes

    def join(
        self, source: Slab, owners: Sequence[int], rows: Sequence[DecodingRow], drawn: Tensor
    ) -> None:
        """Append `rows` and what they drew first; row n goes on from row owners[n] of `source`: one
        named twice is a fork. The source must not be used after this."""
        picked = torch.tensor(owners, device=self.base.device)
        if not self.rows:
            forks = list(owners) != list(range(source.rows))
            self._slab = source.select(picked) if forks else source
            self._places, self._adapters, self._visible = [], [], []
            first = 0
        else:
            slab, count = self._slab, self._slab.rows + len(owners)
            longest = int(torch.cat([slab.lengths, source.lengths]).max())
            if count > slab.room or longest > slab.capacity:
                count = len(self.rows) + len(owners)
                room = slab.room if count <= slab.room else max(count, slab.room + slab.room // 4)
                self._move(room, max(longest, slab.capacity))
            first = self._slab.rows
            self._slab.append(source, picked)
        self.rows += rows
        self.drawn = torch.cat([self.drawn, drawn])
        self._places += range(first, first + len(rows))
        self._adapters += [row.job.adapter for row in rows]
        self._visible += [row.job.history.visible_from for row in rows]
        places = torch.tensor(self._places, device=self.base.device)
        self._held = places if self._gaps else None
        self._sees = None

    def cached(self, numbers: Sequence[int]) -> list[CachedRow]:
        """Where rows' caches lie; good until the next join or leave, unless they are left there."""
        slab = self._slab
        lengths, offsets = slab.lengths.tolist(), slab.offsets.tolist()
        places = [self._places[number] for number in numbers]
        return [CachedRow(slab, place, lengths[place], offsets[place]) for place in places]

    def leave(self, numbers: Sequence[int]) -> None:
        """Take rows out, named in ascending order."""
        if len(numbers) == len(self.rows):
            self.clear()
            return
        order = list(range(len(self.rows)))
        if self._gaps or any(self.rows[number].job.holds for number in numbers):
            gone = set(numbers)
            order = [number for number in order if number not in gone]
            kept = torch.tensor(order, device=self.base.device)
            self._places = [self._places[number] for number in order]
            self._held = kept if self._held is None else self._held[kept]
            if len(order) <= self._slab.rows // 2:
                self._take(self._places, self._slab.capacity, len(order))
        else:
            for number in reversed(numbers):
                order[number] = order[-1]
                order.pop()
            kept = torch.tensor(order, device=self.base.device)
            self._slab.reduce(order)
            self._rearrange(order)
        self.rows = [self.rows[number] for number in order]
        self.drawn = self.drawn[kept]

    def fit(self) -> bool:
        """Make room for one more token of every row; whether anything had to move."""
        slots = self._used
        if slots <= self._slab.capacity:
            return False
        self._move(self._slab.room, slots)
        return True

    def shrink(self) -> None:
        """Give memory back where most of it is unused."""
        if self.rows:
            slab, longest = self._slab, int(self._slab.lengths.max())
            if 4 * slab.rows <= slab.room or 4 * longest + 4 * BLOCK <= slab.capacity:
                self._move(min(slab.room, 2 * slab.rows), longest)

    def step(self) -> Tensor:
        """Logits [rows, V] after the tokens that were drawn last; there must be room."""
        slab, held, drawn = self._slab, self._held, self.drawn
        if self._sees is None:
            self._sees = torch.tensor(self._visible, device=drawn.device)[:, None]
        ids = drawn[:, None]
        if held is not None:
            ids = torch.zeros((slab.rows, 1), dtype=torch.long, device=drawn.device)
            ids[held, 0] = drawn
        positions = slab.begin(1, self._used)
        with self.base.using(self._adapters):
            hidden = self.base.hidden(
                ids, position_ids=positions, mask=slab.mask(positions, self._sees), cache=slab
            )[:, -1]
            logits = self.base.logits(hidden if held is None else hidden[held])
        if held is None:
            slab.lengths = slab.lengths + 1
        else:
            slab.lengths[held] += 1
        return logits

    @property
    def _gaps(self) -> bool:
        return len(self._places) < self._slab.rows

    @property
    def _used(self) -> int:
        return int(self._slab.lengths.max()) + 1

    def _move(self, room: int, slots: int) -> None:
        """To a slab of `room` rows and some more than `slots` slots."""
        self._take(self._places, slots + slots // 4 + 1, room)

    def _take(self, places: Sequence[int], capacity: int, room: int) -> None:
        """To a new slab; the old one stays as it is for those who hold rows of it."""
        rows = torch.tensor(places, dtype=torch.long, device=self.base.device)
        self._slab = self._slab.select(rows, capacity, room)
        self._rearrange(places)

    def _rearrange(self, order: Sequence[int]) -> None:
        """The slab's rows are now those that were `order`."""
        self._adapters = [self._adapters[place] for place in order]
        self._visible = [self._visible[place] for place in order]
        self._places = list(range(len(order)))
        self._held = self._sees = None
