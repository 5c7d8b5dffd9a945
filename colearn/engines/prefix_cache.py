"""Stores KV caches of the histories that an engine has returned. A cache is looked up by the
identity of the history object."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from dataclasses import dataclass

from colearn.contract import TokenHistory
from colearn.models.base import Base

from .batch_slab import CachedRow, gather


@dataclass(frozen=True, slots=True)
class _Entry:
    history: weakref.ref[TokenHistory]
    row: CachedRow
    adapter: str | None


class PrefixCache:
    """Holds weak references to histories, so a KV cache is freed with its history. New weights of
    the base clear all entries.

    With `copies`, each row is copied to a separate slab, which `evict` can free. With `copies`,
    `take` also removes the row, because the row of the continued history will replace the removed
    row. Without `copies`, rows stay in the batch in which they were decoded. A missing KV cache
    costs only time: the history is recomputed from its token ids.
    """

    def __init__(self, base: Base, *, copies: bool) -> None:
        self.base, self.copies = base, copies
        self.bytes = 0
        """Memory of the copies in bytes."""
        self.evicted = 0
        """Number of histories evicted over the cache's lifetime."""
        self._entries: OrderedDict[int, _Entry] = OrderedDict()
        self._lock = threading.RLock()  # a history may be collected in any thread
        self._revision = base.revision

    def __len__(self) -> int:
        return len(self._entries)

    def take(self, history: TokenHistory, adapter: str | None) -> CachedRow | None:
        """Return the KV cache that an adapter computed for a history; None if this cache is not
        stored."""
        with self._lock:
            self._check_weights()
            entry = self._entries.get(id(history))
            if entry is None or entry.history() is not history or entry.adapter != adapter:
                return None
            if self.copies:
                self._drop(id(history))
            return entry.row

    def put(self, history: TokenHistory, row: CachedRow, adapter: str | None) -> None:
        """Store the KV cache of a history. The cache covers all tokens except the history's last
        token."""
        if self.copies:
            cut = max(0, history.visible_from - row.offset)  # no later turn sees what is before
            slab = gather([row], [cut], row.length - cut, self.base.device)
            row = CachedRow(slab, 0, row.length - cut, row.offset + cut)
        key = id(history)

        def collected(reference: weakref.ref[TokenHistory]) -> None:
            with self._lock:
                entry = self._entries.get(key)
                if entry is not None and entry.history is reference:
                    self._drop(key)

        with self._lock:
            self._check_weights()
            self._drop(key)
            self._entries[key] = _Entry(weakref.ref(history, collected), row, adapter)
            if self.copies:
                self.bytes += row.slab.bytes

    def evict(self, limit: int) -> None:
        """Free the least recently stored caches until the copies take at most `limit` bytes."""
        with self._lock:
            while self.bytes > limit and self._entries:
                self._drop(next(iter(self._entries)))
                self.evicted += 1

    def _check_weights(self) -> None:
        if self.base.revision != self._revision:
            for key in [*self._entries]:
                self._drop(key)
            self._revision = self.base.revision

    def _drop(self, key: int) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None and self.copies:
            self.bytes -= entry.row.slab.bytes
