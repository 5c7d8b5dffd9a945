"""KV caches of histories of unequal length, stored in one preallocated slab with one row per
history.

Slot s of a row holds position s + offset of the row's history, so there is no padding between
tokens. Rows write to different slots, and the mask hides slots that a row does not use. Forking,
compaction and context windows only copy rows and slots; they never need a new prefill.
`Running.join` decides which rows are forked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from einops import rearrange
from torch import Tensor

BLOCK = 64
"""Number of slots per block: slabs grow in blocks, so that shapes repeat and memory is reused."""

HEADS_BEFORE_SLOTS = "row head slot width -> row slot head width"
"""einops pattern for a tensor before its assignment to row and slot indices. In this assignment,
torch expects the indexed slot dimension in second place."""


@dataclass(frozen=True, slots=True)
class CachedRow:
    """Location of one history's KV cache: the first `length` slots of a slab's row."""

    slab: Slab
    row: int
    """Index of the row when this object was created; `slab.place` returns the row's current
    index."""
    length: int
    offset: int
    """Number of positions dropped at the front: slot s holds position s + offset."""

    @property
    def end(self) -> int:
        """First position after the cached positions."""
        return self.offset + self.length


class Slab:
    """Keys and values of R histories, with shape [room, heads, capacity, width] for each layer. A
    slab can be used as a transformers cache. The first R of `room` rows are in use.

    Layers allocate on their first update, so any mix of head counts and widths works.
    """

    is_compileable = False
    branches = 1
    """Number of rows that share one row of the tensors."""

    def __init__(
        self, rows: int, capacity: int, device: torch.device, room: int | None = None
    ) -> None:
        self.rows = rows
        self.room = rows if room is None else room
        self.capacity = -(-capacity // BLOCK) * BLOCK
        self.device = device
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []
        self._device_lengths: Tensor | None
        self._device_offsets: Tensor | None
        self.lengths = [0] * rows
        """Number of positions in each row. The rows' lengths and offsets are set on the host and
        never read from the device."""
        self.offsets = [0] * rows
        self._slots = torch.zeros((rows, 0), dtype=torch.long, device=device)
        self._used = 0
        self._level: int | None = None
        """Index of the first new slot if this index is the same for all rows and each row adds one
        token; else None."""
        self._places: dict[int, int] | None = None
        """After `split`: current row index by earlier row index."""

    @property
    def lengths(self) -> list[int]:
        return self._lengths

    @lengths.setter
    def lengths(self, lengths: list[int]) -> None:
        self._lengths, self._device_lengths = lengths, None

    @property
    def offsets(self) -> list[int]:
        return self._offsets

    @offsets.setter
    def offsets(self, offsets: list[int]) -> None:
        self._offsets, self._device_offsets = offsets, None

    @property
    def device_lengths(self) -> Tensor:
        """The rows' lengths [R] as a tensor on the device, copied once after each change."""
        if self._device_lengths is None:
            self._device_lengths = self._integers(self._lengths)
        return self._device_lengths

    @property
    def device_offsets(self) -> Tensor:
        """The rows' offsets [R] as a tensor on the device, copied once after each change."""
        if self._device_offsets is None:
            self._device_offsets = self._integers(self._offsets)
        return self._device_offsets

    def grow(
        self, places: Sequence[int] | None = None, device_places: Tensor | None = None
    ) -> None:
        """Increase the length of each row, or only of the rows `places`, by one position.
        `device_places` contains the indices in `places` as a tensor on the device."""
        lengths = self.device_lengths
        if places is None or device_places is None:
            self.lengths = [length + 1 for length in self._lengths]
            self._device_lengths = lengths + 1
            return
        grown = self._lengths
        for place in places:
            grown[place] += 1
        lengths[device_places] += 1

    def _integers(self, values: Sequence[int]) -> Tensor:
        return torch.tensor(values, dtype=torch.long, device=self.device)

    def first(self, rows: int, lengths: Tensor, offsets: Tensor) -> Slab:
        """Return a slab of the first `rows` rows of the same memory. The new slab's lengths and
        offsets [rows] are tensors that the caller writes. The host does not know the values of
        these tensors."""
        view = Slab(rows, self.capacity, self.device, self.room)
        view.keys, view.values = self.keys, self.values
        view._device_lengths, view._device_offsets = lengths, offsets
        return view

    def begin(self, count: int, used: int, *, alike: bool | None = None) -> Tensor:
        """Prepare for `count` new tokens per row, after which at most `used` slots are in use.
        `alike`: whether all rows have the same length. If None, the lengths on the host decide.

        Returns the positions [R, count] of the new tokens. Slots beyond a row's real tokens hold
        undefined values, which are overwritten before any query attends to these slots.
        """
        steps = torch.arange(count, device=self.device)
        self._slots = self.device_lengths[:, None] + steps
        if alike is None:
            alike = count == 1 and len(set(self._lengths)) == 1
        self._level = self._lengths[0] if alike else None
        self._all_rows = torch.arange(self.rows, device=self.device)[:, None]
        self._used = min(-(-used // BLOCK) * BLOCK, self.capacity)
        return self._slots + self.device_offsets[:, None]

    def mask(self, positions: Tensor, visible_from: Tensor) -> Tensor:
        """[R, 1, T, used] Causal mask for queries at `positions` [R, T]. Excludes keys before
        `visible_from` [R, T]."""
        keys = rearrange(self.key_positions(), "row key -> row 1 1 key")
        last, first = (
            rearrange(bound, "row query -> row 1 query 1") for bound in (positions, visible_from)
        )
        return (keys <= last) & (keys >= first)

    def key_positions(self) -> Tensor:
        """[R, used] Position of each slot."""
        return torch.arange(self._used, device=self.device) + self.device_offsets[:, None]

    def update(
        self, keys: Tensor, values: Tensor, layer: int, *_: object, **__: object
    ) -> tuple[Tensor, Tensor]:
        """Write one layer's new keys and values [R, heads, T, width]; returns all slots in use."""
        if layer == len(self.keys):
            for store, new in ((self.keys, keys), (self.values, values)):
                shape = (self.room, new.shape[1], self.capacity, new.shape[3])
                store.append(new.new_zeros(shape, dtype=_read_as(new)))
        for store, new in ((self.keys, keys), (self.values, values)):
            if self._level is not None:  # several times faster than by indices
                end = self._level + new.shape[2]
                store[layer][: self.rows, :, self._level : end] = new
            else:
                placed = rearrange(new.to(store[layer].dtype), HEADS_BEFORE_SLOTS)
                store[layer][self._all_rows, :, self._slots] = placed
        used = (slice(0, self.rows), slice(None), slice(0, self._used))
        return self.keys[layer][used], self.values[layer][used]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self._used

    def get_mask_sizes(self, query_length: int, layer_idx: int = 0) -> tuple[int, int]:
        return self._used, 0

    @property
    def bytes(self) -> int:
        """Allocated memory in bytes."""
        return sum(layer.numel() * layer.element_size() for layer in (*self.keys, *self.values))

    def select(self, rows: Sequence[int], used: int, capacity: int) -> Slab:
        """Return a new slab with copies of the given rows, which may repeat; `used` is the length
        of the longest row."""
        picked = self._integers(rows)
        slab = Slab(len(rows), capacity, self.device)
        slab._copy_lengths(self, rows)
        for old, new in ((self.keys, slab.keys), (self.values, slab.values)):
            new += [_copied(layer, picked, used, slab) for layer in old]
        return slab

    def split(self, rows: Sequence[int], capacity: int, room: int) -> Slab:
        """Move rows to a new slab. This slab keeps the other rows, trimmed to the longest remaining
        row, for holders of a `CachedRow`. Nothing can be written to this slab afterwards.

        Rows are moved layer by layer. If `room` is the number of moved rows and `capacity` is
        unchanged, the two slabs together are no larger than this slab was before the split.
        """
        moved_rows = set(rows)
        kept_rows = [row for row in range(self.rows) if row not in moved_rows]
        moved_index, kept_index = self._integers(rows), self._integers(kept_rows)
        slab = Slab(len(rows), capacity, self.device, room)
        slab._copy_lengths(self, rows)
        used = max(slab.lengths)
        longest = max((self.lengths[row] for row in kept_rows), default=0)
        for old, new in ((self.keys, slab.keys), (self.values, slab.values)):
            for number, layer in enumerate(old):
                new.append(_copied(layer, moved_index, used, slab))
                old[number] = layer[kept_index, :, :longest]
                del layer
        self._copy_lengths(self, kept_rows)
        self.rows = self.room = len(kept_rows)
        self.capacity = longest
        self._places = {row: number for number, row in enumerate(kept_rows)}
        return slab

    def place(self, row: int) -> int:
        """Return the current index of a `CachedRow`'s row."""
        return row if self._places is None else self._places[row]

    def located(self, rows: Tensor, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """Rows and slots of the tensors in which cached positions are stored: number `numbers`
        [N, T] of each of the rows `rows` [N, 1]."""
        return rows, numbers

    def handed_out(self, places: Sequence[int]) -> list[CachedRow]:
        """Return the cache locations of the histories in the rows `places`."""
        return [CachedRow(self, row, self.lengths[row], self.offsets[row]) for row in places]

    def append(self, source: Slab, rows: Sequence[int]) -> None:
        """Copy rows of another slab after the rows in use; there must be room for them."""
        lengths = [source.lengths[row] for row in rows]
        first, used, picked = self.rows, max(lengths), self._integers(rows)
        for old, new in ((source.keys, self.keys), (source.values, self.values)):
            for layer, into in zip(old, new, strict=True):
                into[first : first + len(rows), :, :used] = layer[picked, :, :used]
        self.rows += len(rows)
        self.lengths = self.lengths + lengths
        self.offsets = self.offsets + [source.offsets[row] for row in rows]

    def reduce(self, order: Sequence[int]) -> None:
        """Keep only the rows in `order`, and put them in this order."""
        moved = [(place, row) for place, row in enumerate(order) if place != row]
        self._copy_lengths(self, order)
        self.rows = len(order)
        if moved:
            places, rows = torch.tensor(moved, device=self.device).T
            used = max(self.lengths[place] for place, _ in moved)
            for layer in (*self.keys, *self.values):
                layer[places, :, :used] = layer[rows, :, :used]

    def _copy_lengths(self, source: Slab, rows: Sequence[int]) -> None:
        """Copy the lengths and offsets of `rows` from another slab."""
        self.lengths, self.offsets = (
            [of[row] for row in rows] for of in (source.lengths, source.offsets)
        )


def _read_as(new: Tensor) -> torch.dtype:
    """Return the type in which attention reads keys and values: autocast's type under autocast,
    else the tensor's type."""
    kind = new.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else new.dtype


def _copied(layer: Tensor, rows: Tensor, used: int, into: Slab) -> Tensor:
    """Copy the first `used` slots of `rows` in a layer to a tensor with the shape that the slab
    `into` needs."""
    if into.capacity == layer.shape[2] and into.room == into.rows:
        return layer.index_select(0, rows)  # one pass over the memory
    copy = layer.new_zeros(into.room, layer.shape[1], into.capacity, layer.shape[3])
    copy[: into.rows, :, :used] = layer[rows, :, :used]
    return copy


def gather(
    sources: Sequence[CachedRow | None],
    cuts: Sequence[int],
    capacity: int,
    device: torch.device,
    room: int | None = None,
) -> Slab:
    """Build a slab with one row for each source (None: an empty history). Row r omits the first
    `cuts[r]` positions of source r."""
    slab = Slab(len(sources), capacity, device, room)
    pairs = list(zip(sources, cuts, strict=True))
    slab.lengths = [0 if source is None else source.length - cut for source, cut in pairs]
    slab.offsets = [0 if source is None else source.offset + cut for source, cut in pairs]
    for old, copies in _copies(sources, cuts):
        to_rows, from_rows, first, counts = torch.tensor(copies, device=device).T
        # a short copy repeats its last slot
        steps = torch.arange(max(count for *_, count in copies), device=device)
        steps = steps.minimum(counts[:, None] - 1)
        places, from_slots = old.located(from_rows[:, None], first[:, None] + steps)
        for olds, news in ((old.keys, slab.keys), (old.values, slab.values)):
            for layer, cached in enumerate(olds):
                if layer == len(news):
                    shape = (slab.room, cached.shape[1], slab.capacity, cached.shape[3])
                    news.append(cached.new_zeros(shape))
                entries = cached[places, :, from_slots]
                news[layer][to_rows[:, None], :, steps] = entries
    return slab


Copy = tuple[int, int, int, int]
"""One copy of slots: (new row, old row, first old slot, number of slots)."""


def _copies(
    sources: Sequence[CachedRow | None], cuts: Sequence[int]
) -> Iterator[tuple[Slab, list[Copy]]]:
    """List the copies that `gather` makes, grouped by source slab."""
    by_slab: dict[int, tuple[Slab, list[Copy]]] = {}
    for number, (source, cut) in enumerate(zip(sources, cuts, strict=True)):
        if source is not None and cut < source.length:
            old = source.slab
            _, copies = by_slab.setdefault(id(old), (old, []))
            copies.append((number, old.place(source.row), cut, source.length - cut))
    yield from by_slab.values()
