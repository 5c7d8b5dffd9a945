"""KV caches of histories of unequal length: one preallocated slab, one row per history.

Slot s of a row holds position s + offset of its history, so there is no padding between tokens.
Rows write at different slots, and the mask separates them. Forking, compaction and context windows
are gathers of rows and slots, never a new prefill. `Running.join` decides what is forked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from einops import rearrange
from torch import Tensor

BLOCK = 64
"""Slots per block: slabs grow in blocks, so that shapes repeat and memory is reused."""

HEADS_BEFORE_SLOTS = "row head slot width -> row slot head width"
"""Indexing rows and slots at once moves slots to the second dimension."""


@dataclass(frozen=True, slots=True)
class CachedRow:
    """Location of one history's KV cache: `length` positions from slot 0 of a slab's row."""

    slab: Slab
    row: int
    """Its row when it was handed out; `slab.place` says where it is."""
    length: int
    offset: int
    """Positions dropped at the front: slot s is position s + offset."""

    @property
    def end(self) -> int:
        """The first position after the cached ones."""
        return self.offset + self.length


class Slab:
    """Keys and values of R histories, per layer [room, heads, capacity, width]; a transformers
    cache. The first R of `room` rows are in use.

    Layers allocate on their first update, so any mix of head counts and widths works.
    """

    is_compileable = False

    def __init__(
        self, rows: int, capacity: int, device: torch.device, room: int | None = None
    ) -> None:
        self.rows = rows
        self.room = rows if room is None else room
        self.capacity = -(-capacity // BLOCK) * BLOCK
        self.device = device
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []
        self.lengths = torch.zeros(rows, dtype=torch.long, device=device)
        self.offsets = torch.zeros(rows, dtype=torch.long, device=device)
        self._slots = torch.zeros((rows, 0), dtype=torch.long, device=device)
        self._used = 0
        self._level: int | None = None
        """First new slot of every row, if they are equal and it is known."""
        self._places: dict[int, int] | None = None
        """Rows by earlier rows, after `split`."""

    def begin(self, count: int, used: int, level: int | None = None) -> Tensor:
        """Prepare for `count` new tokens per row, after which at most `used` slots are in use.
        `level` is the first new slot, if the caller knows that it is the same for every row.

        Returns their positions [R, count]. Slots beyond a row's real tokens hold undefined values
        that no query sees before they are overwritten.
        """
        steps = torch.arange(count, device=self.device)
        self._slots = self.lengths[:, None] + steps
        self._level = level
        self._used = min(-(-used // BLOCK) * BLOCK, self.capacity)
        return self._slots + self.offsets[:, None]

    def mask(self, positions: Tensor, visible_from: Tensor) -> Tensor:
        """[R, 1, T, used] Causal mask of queries at `positions` [R, T], without keys before
        `visible_from` [R, T]."""
        keys = rearrange(self.key_positions(), "row key -> row 1 1 key")
        last, first = (
            rearrange(bound, "row query -> row 1 query 1") for bound in (positions, visible_from)
        )
        return (keys <= last) & (keys >= first)

    def key_positions(self) -> Tensor:
        """[R, used] Position of each slot."""
        return torch.arange(self._used, device=self.device) + self.offsets[:, None]

    def update(
        self, keys: Tensor, values: Tensor, layer: int, *_: object, **__: object
    ) -> tuple[Tensor, Tensor]:
        """Write one layer's new keys and values [R, heads, T, width]; returns all slots in use."""
        if layer == len(self.keys):
            for store, new in ((self.keys, keys), (self.values, values)):
                store.append(new.new_zeros(self.room, new.shape[1], self.capacity, new.shape[3]))
        rows = torch.arange(self.rows, device=self.device)[:, None]
        for store, new in ((self.keys, keys), (self.values, values)):
            if self._level is not None:  # several times faster than by indices
                end = self._level + new.shape[2]
                store[layer][: self.rows, :, self._level : end] = new
            else:
                store[layer][rows, :, self._slots] = rearrange(new, HEADS_BEFORE_SLOTS)
        used = (slice(0, self.rows), slice(None), slice(0, self._used))
        return self.keys[layer][used], self.values[layer][used]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self._used

    def get_mask_sizes(self, query_length: int, layer_idx: int = 0) -> tuple[int, int]:
        return self._used, 0

    @property
    def bytes(self) -> int:
        """Allocated memory."""
        return sum(layer.numel() * layer.element_size() for layer in (*self.keys, *self.values))

    def select(self, rows: Sequence[int], used: int, capacity: int) -> Slab:
        """A new slab of the given rows, repeated ones included; `used` is the length of the longest
        of them."""
        picked = torch.tensor(rows, dtype=torch.long, device=self.device)
        taken = Slab(len(rows), capacity, self.device)
        taken.lengths, taken.offsets = self.lengths[picked], self.offsets[picked]
        for old, new in ((self.keys, taken.keys), (self.values, taken.values)):
            new += [_copied(layer, picked, used, taken) for layer in old]
        return taken

    def split(self, rows: Sequence[int], capacity: int, room: int) -> Slab:
        """Move rows to a new slab. This one keeps the others, at their lengths, for those who hold
        a `CachedRow` of them, and cannot be written any more.

        Layer by layer: together the two are no larger than this one was, where `room` is the
        number of rows and `capacity` the same.
        """
        gone = set(rows)
        kept = [row for row in range(self.rows) if row not in gone]
        moved, left = (
            torch.tensor(some, dtype=torch.long, device=self.device) for some in (rows, kept)
        )
        taken = Slab(len(rows), capacity, self.device, room)
        taken.lengths, taken.offsets = self.lengths[moved], self.offsets[moved]
        used = int(taken.lengths.max()) if len(rows) else 0
        longest = int(self.lengths[left].max()) if kept else 0
        for old, new in ((self.keys, taken.keys), (self.values, taken.values)):
            for number, layer in enumerate(old):
                new.append(_copied(layer, moved, used, taken))
                old[number] = layer[left, :, :longest]
                del layer
        self.lengths, self.offsets = self.lengths[left], self.offsets[left]
        self.rows = self.room = len(kept)
        self.capacity = longest
        self._places = {row: number for number, row in enumerate(kept)}
        return taken

    def place(self, row: int) -> int:
        """Where the row of a `CachedRow` is."""
        return row if self._places is None else self._places[row]

    def handed_out(self, places: Sequence[int]) -> list[CachedRow]:
        """Cache locations of the histories at `places`."""
        lengths, offsets = self.lengths.tolist(), self.offsets.tolist()
        return [CachedRow(self, place, lengths[place], offsets[place]) for place in places]

    def segments(self, row: CachedRow) -> Iterator[tuple[Slab, int, int, int]]:
        """Where a history's positions lie: slab, row, the first position's place in the history
        and their number."""
        yield self, self.place(row.row), 0, row.length

    def whole(self, rows: Sequence[int]) -> Slab:
        """A slab in which `rows` have their histories to themselves."""
        return self

    def append(self, source: Slab, rows: Tensor) -> None:
        """Copy rows of another slab after the rows in use; there must be room for them."""
        lengths, offsets = source.lengths[rows], source.offsets[rows]
        first, used = self.rows, int(lengths.max())
        for old, new in ((source.keys, self.keys), (source.values, self.values)):
            for layer, into in zip(old, new, strict=True):
                into[first : first + len(rows), :, :used] = layer[rows, :, :used]
        self.rows += len(rows)
        self.lengths = torch.cat([self.lengths, lengths])
        self.offsets = torch.cat([self.offsets, offsets])

    def reduce(self, order: Sequence[int]) -> Slab:
        """Keep only the rows in `order`, in this order; in place where that is the better."""
        moved = [(place, row) for place, row in enumerate(order) if place != row]
        kept = torch.tensor(order, dtype=torch.long, device=self.device)
        self.lengths, self.offsets = self.lengths[kept], self.offsets[kept]
        self.rows = len(order)
        if moved:
            places, rows = torch.tensor(moved, device=self.device).T
            used = int(self.lengths[places].max())
            for layer in (*self.keys, *self.values):
                layer[places, :, :used] = layer[rows, :, :used]
        return self


def _copied(layer: Tensor, rows: Tensor, used: int, into: Slab) -> Tensor:
    """Rows of a layer, `used` slots of them, in a tensor for another slab."""
    if into.capacity == layer.shape[2] and into.room == into.rows:
        return layer.index_select(0, rows)  # one pass over the memory
    copy = layer.new_zeros(into.room, layer.shape[1], into.capacity, layer.shape[3])
    copy[: into.rows, :, :used] = layer[rows, :, :used]
    return copy


def gather(
    sources: Sequence[CachedRow | None], cuts: Sequence[int], capacity: int, device: torch.device
) -> Slab:
    """A slab with one row per source (None: an empty history), without the first `cuts[r]`
    positions of row r."""
    slab = Slab(len(sources), capacity, device)
    kept = [0 if s is None else s.length - cut for s, cut in zip(sources, cuts, strict=True)]
    offsets = [0 if s is None else s.offset + cut for s, cut in zip(sources, cuts, strict=True)]
    slab.lengths = torch.tensor(kept, dtype=torch.long, device=device)
    slab.offsets = torch.tensor(offsets, dtype=torch.long, device=device)
    for old, copies in _copies(sources, cuts):
        to_rows, from_rows, first, into, counts = torch.tensor(copies, device=device).T
        # a short copy repeats its last slot
        steps = torch.arange(int(counts.max()), device=device)
        steps = steps.minimum(counts[:, None] - 1)
        from_slots, to_slots = first[:, None] + steps, into[:, None] + steps
        for olds, news in ((old.keys, slab.keys), (old.values, slab.values)):
            for layer, cached in enumerate(olds):
                if layer == len(news):
                    shape = (len(sources), cached.shape[1], slab.capacity, cached.shape[3])
                    news.append(cached.new_zeros(shape))
                taken = cached[from_rows[:, None], :, from_slots]
                news[layer][to_rows[:, None], :, to_slots] = taken
    return slab


Copy = tuple[int, int, int, int, int]
"""New row, old row, first old slot, first new slot, number of slots."""


def _copies(
    sources: Sequence[CachedRow | None], cuts: Sequence[int]
) -> Iterator[tuple[Slab, list[Copy]]]:
    """What is copied for `gather`, by the slab that it is copied from."""
    by_slab: dict[int, tuple[Slab, list[Copy]]] = {}
    for number, (source, cut) in enumerate(zip(sources, cuts, strict=True)):
        for old, row, first, count in () if source is None else source.slab.segments(source):
            skipped = max(0, cut - first)
            if skipped < count:
                _, copies = by_slab.setdefault(id(old), (old, []))
                copies.append((number, row, skipped, first + skipped - cut, count - skipped))
    yield from by_slab.values()
