"""Sessions between their turns: their KV caches, and which is evicted for want of memory."""

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
    """A compact slab of its own for each session, the least recently used one first.

    A session that is evicted loses nothing but time: its history is computed again from its ids.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.bytes = 0
        self.evicted = 0
        """Sessions that have lost their KV cache to the limit, over the store's life."""
        self._kept: OrderedDict[int, _KeptCache] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def take(self, slot: Slot) -> CachedRow | None:
        """The session's cache, which leaves the store; None where it is gone, or where it is not
        of the turn that the session is at."""
        kept = self.forget(slot.key)
        return kept.row if kept is not None and kept.mark == slot.held else None

    def put(self, slot: Slot, row: CachedRow, visible_from: int) -> None:
        """Keep a copy of a row that has ended, of the positions that a later turn may see."""
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
        """Until at most `limit` bytes are kept."""
        while self.bytes > limit and self._kept:
            self.forget(next(iter(self._kept)))
            self.evicted += 1
