"""KV caches of idle sessions, evicted least recently used first."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import torch

from .job import Slot
from .kv_cache import CachedRow, gather


@dataclass(frozen=True, slots=True)
class _KeptCache:
    row: CachedRow
    mark: int


class SessionCaches:
    """One compact slab per session, ordered from least to most recently used.

    An evicted session costs only time: its history is prefilled again from its ids.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.bytes = 0
        self.evicted = 0
        """Number of sessions evicted over the store's life."""
        self._kept: OrderedDict[int, _KeptCache] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def take(self, slot: Slot) -> CachedRow | None:
        """Remove and return the session's cache; None if it was evicted or belongs to another
        turn."""
        kept = self.forget(slot.key)
        return kept.row if kept is not None and kept.mark == slot.held else None

    def put(self, slot: Slot, row: CachedRow, visible_from: int) -> None:
        """Store a copy of a finished row, from the first position that a later turn can see."""
        cut = max(0, visible_from - row.offset)
        length = row.length - cut
        slab = gather([row], [cut], length, self.device)
        self.forget(slot.key)
        self._kept[slot.key] = _KeptCache(CachedRow(slab, 0, length, row.offset + cut), slot.mark)
        self.bytes += slab.bytes

    def forget(self, key: int) -> _KeptCache | None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self.bytes -= kept.row.slab.bytes
        return kept

    def evict(self, limit: int) -> None:
        """Evict sessions until at most `limit` bytes are stored."""
        while self.bytes > limit and self._kept:
            self.forget(next(iter(self._kept)))
            self.evicted += 1
