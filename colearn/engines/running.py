"""The running batch. All rows of the batch decode together. A row can join between steps, and
leaves once its action has ended."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from colearn.models.base import Base

from .batch_slab import BLOCK, CachedRow, Slab
from .branched_slab import BranchedSlab, branches
from .job import DecodingRow
from .step_graphs import StepGraphs


class Running:
    """Rows and their KV caches, in one slab that grows and shrinks.

    When a row leaves, the last row takes its place. With `in_place`, an ended row whose history may
    be continued stays in the slab: steps compute this row and ignore the result. Once at least half
    of the slab's rows have left the batch, the running rows move to a new slab. With `graphs`, a
    CUDA device replays recorded passes.
    """

    def __init__(self, base: Base, *, in_place: bool, graphs: bool) -> None:
        self.base, self._in_place, self._graphs_allowed = base, in_place, graphs
        self.clear()

    def clear(self) -> None:
        self.rows: list[DecodingRow] = []
        self.drawn = torch.zeros(0, dtype=torch.long, device=self.base.device)
        """[rows] The last sampled token of each row, which is not yet in the row's cache."""
        self._slab = Slab(0, 0, self.base.device)
        self._graphs: StepGraphs | None = None
        self._places: list[int] = []
        """Slab row of each running row."""
        self._adapters: list[str | None] = []
        self._visible: list[int] = []
        """First visible position of each slab row. `_adapters` is also ordered by slab row."""
        self._held: Tensor | None = None
        """`_places` as a tensor, if the slab also holds rows that have left."""
        self._sees: Tensor | None = None
        """[slab rows, 1] `_visible` as a tensor, built on demand."""

    @property
    def bytes(self) -> int:
        return self._slab.bytes

    def join(
        self,
        source: Slab,
        owners: Sequence[int],
        rows: Sequence[DecodingRow],
        tokens: Tensor,
        reserve: int = 0,
    ) -> None:
        """Append `rows` with their first sampled tokens. Row n continues row owners[n] of `source`.
        A source row that occurs several times in `owners` is forked, with `reserve` free slots per
        fork. `source` must not be used afterwards."""
        if not self.rows:
            forks = list(owners) != list(range(source.rows))
            self._slab = self._forked(source, owners, rows, reserve) if forks else source
            first = 0
        else:
            slab = self._slab
            count = slab.rows + len(owners)
            longest = max(slab.lengths + source.lengths)
            if count > slab.room or longest > slab.capacity:
                count = len(self.rows) + len(owners)
                room = slab.room if count <= slab.room else max(count, slab.room + slab.room // 4)
                self._move(room, max(longest, slab.capacity))
            first = self._slab.rows
            self._slab.append(source, owners)
        self.drawn = torch.cat([self.drawn, tokens]) if self.rows else tokens
        self.rows += rows
        self._places += range(first, first + len(rows))
        self._adapters += [row.job.adapter for row in rows]
        self._visible += [row.job.request.history.visible_from for row in rows]
        self._held = self._on_device(self._places) if self._gaps else None
        self._sees = None

    def _forked(
        self, source: Slab, owners: Sequence[int], rows: Sequence[DecodingRow], reserve: int
    ) -> Slab:
        if self._in_place and not self._records and all(row.job.keeps for row in rows):
            each = branches(source, owners, reserve)
            if each > 1:
                return BranchedSlab(source, each, reserve)
        used = max(source.lengths)
        return source.select(owners, used, used + reserve)

    def cached(self, numbers: Sequence[int]) -> list[CachedRow]:
        """Return the cache locations of rows. If the rows do not stay in the slab, the locations
        are valid until the next `join` or `leave`."""
        return self._slab.handed_out([self._places[number] for number in numbers])

    def leave(self, numbers: Sequence[int]) -> None:
        """Remove rows, given in ascending order."""
        if len(numbers) == len(self.rows):
            self.clear()
            return
        order = list(range(len(self.rows)))
        keeps = self._in_place and any(self.rows[number].job.keeps for number in numbers)
        if self._gaps or keeps:
            removed_rows = set(numbers)
            order = [number for number in order if number not in removed_rows]
            kept_index = self._on_device(order)
            self._places = [self._places[number] for number in order]
            self._held = kept_index if self._held is None else self._held[kept_index]
            if len(order) <= self._slab.rows // 2:
                self._take(self._places, self._slab.capacity, len(order))
        else:
            for number in reversed(numbers):
                order[number] = order[-1]
                order.pop()
            kept_index = self._on_device(order)
            self._slab.reduce(order)
            self._rearrange(order)
        self.rows = [self.rows[number] for number in order]
        self.drawn = self.drawn[kept_index]

    def fit(self) -> bool:
        """Make room for one more token per row; returns whether the slab was reallocated."""
        slots = self._used
        if slots <= self._slab.capacity:
            return False
        self._move(self._slab.room, slots)
        return True

    def shrink(self) -> None:
        """Move to a smaller slab if most of the slab is unused."""
        if self.rows:
            slab, longest = self._slab, max(self._slab.lengths)
            if 4 * slab.rows <= slab.room or 4 * longest + 4 * BLOCK <= slab.capacity:
                self._move(min(slab.room, 2 * slab.rows), longest)

    def step(self) -> Tensor:
        """Compute logits [rows, V] after the last sampled tokens; the slab must have room for these
        tokens."""
        slab, device_places, tokens = self._slab, self._held, self.drawn
        if self._sees is None:
            self._sees = self._on_device(self._visible)[:, None]
        ids = tokens[:, None]
        if device_places is not None:
            ids = torch.zeros((slab.rows, 1), dtype=torch.long, device=tokens.device)
            ids[device_places, 0] = tokens
        hidden = self._hidden(ids, self._sees)
        with self.base.using(self._adapters), self.base.packed():
            if device_places is None:
                logits = self.base.logits(hidden)
            else:
                logits = self.base.logits(hidden[device_places], self._places)
        slab.grow(self._places, device_places)
        return logits

    def _hidden(self, ids: Tensor, sees: Tensor) -> Tensor:
        """Compute the last hidden states [slab rows, D] of the rows' last tokens."""
        if self._records:
            if self._graphs is None:
                self._graphs = StepGraphs(self.base)
            return self._graphs.hidden(self._slab, ids, sees, self._adapters, self._used)
        slab, each = self._slab, self._slab.branches
        positions = slab.begin(1, self._used)
        mask, ids = slab.mask(positions, sees), ids.view(-1, each)
        with self.base.using(self._adapters[::each]), self.base.packed():
            hidden = self.base.hidden(ids, position_ids=positions, mask=mask, cache=slab)
        return hidden.flatten(0, 1)

    @property
    def _records(self) -> bool:
        """Whether passes are recorded and replayed."""
        base = self.base
        return self._graphs_allowed and base.device.type == "cuda" and base.recordable

    @property
    def _gaps(self) -> bool:
        return len(self._places) < self._slab.rows

    @property
    def _used(self) -> int:
        return max(self._slab.lengths) + 1

    def _on_device(self, numbers: Sequence[int]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.long, device=self.base.device)

    def _move(self, room: int, slots: int) -> None:
        """Move the rows to a slab with `room` rows and slightly more than `slots` slots."""
        self._take(self._places, slots + slots // 4 + 1, room)

    def _take(self, places: Sequence[int], capacity: int, room: int) -> None:
        """Move to a new slab; the old slab remains valid for cache locations of its other rows."""
        self._slab = self._slab.split(places, capacity, room)
        self._rearrange(places)

    def _rearrange(self, order: Sequence[int]) -> None:
        """Update row indices after `order` has selected the slab's rows."""
        self._adapters = [self._adapters[place] for place in order]
        self._visible = [self._visible[place] for place in order]
        self._places = list(range(len(order)))
        self._held = self._sees = None
