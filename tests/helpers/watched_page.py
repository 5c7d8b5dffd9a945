"""A play's page that a browser visits while the play goes on."""

from __future__ import annotations

import asyncio
import threading
from typing import Self


class WatchedPage:
    """A page served from a thread of its own; it stays until the block is left."""

    def __init__(self) -> None:
        self.url = ""
        self._ready, self._leave = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._show()))

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(600)
        return self

    def __exit__(self, *raised: object) -> None:
        self._leave.set()
        self._thread.join()

    async def _show(self) -> None:
        """Serves the page: `_opened` once it has an address, then `_left`."""
        raise NotImplementedError

    def _opened(self, url: str) -> None:
        self.url = url
        self._ready.set()

    async def _left(self) -> None:
        """Waits until the block is left."""
        while not self._leave.is_set():
            await asyncio.sleep(0.02)
