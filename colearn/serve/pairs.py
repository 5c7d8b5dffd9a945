"""The sessions' pairs between their turns, within a memory limit."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import torch

from colearn.generate.cache import CachedRow, gather

from .job import Place
from .slab import slab_bytes


@dataclass(frozen=True, slots=True)
class _Kept:
    row: CachedRow
    mark: int
    bytes: int


class PairStore:
    """A compact slab of its own for each session, the least recently used one first.

    Only the engine's thread touches it.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.bytes = 0
        self.evicted = 0
        """Sessions that have lost their pairs to the limit, over the store's life."""
        self._kept: OrderedDict[int, _Kept] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def take(self, place: Place) -> CachedRow | None:
        """The session's pairs, which leave the store; None where they are gone, or where they are
        not of the turn that the session is at."""
        kept = self._remove(place.key)
        return kept.row if kept is not None and kept.mark == place.held else None

    def put(self, place: Place, row: CachedRow, visible_from: int) -> None:
        """Keep a copy of a row that has ended, of the pairs that a later turn may see."""
        cut = max(0, visible_from - row.offset)
        length = row.length - cut
        slab = gather([row], [cut], length, self.device)
        self._remove(place.key)
        kept = _Kept(CachedRow(slab, 0, length, row.offset + cut), place.mark, slab_bytes(slab))
        self._kept[place.key] = kept
        self.bytes += kept.bytes

    def forget(self, key: int) -> None:
        self._remove(key)

    def shrink(self, limit: int) -> None:
        """Evict until at most `limit` bytes are kept."""
        while self.bytes > limit and self._kept:
            self._remove(next(iter(self._kept)))
            self.evicted += 1

    def _remove(self, key: int) -> _Kept | None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self.bytes -= kept.bytes
        return kept
