"""An event loop in a thread of its own, for players that answer one request at a time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from types import TracebackType
from typing import Any, TypeVar

Result = TypeVar("Result")


class EventLoop:
    """Context manager that runs coroutines in a thread. The thread starts with the first coroutine;
    at the end of the context, unfinished coroutines are cancelled and the thread ends.

    The loop has a thread of its own, because a notebook's thread already runs an event loop.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def start(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Start a coroutine in the loop."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=self._loop.run_forever, name="players", daemon=True
            )
            self._thread.start()
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def __enter__(self) -> EventLoop:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._loop is None or self._thread is None:
            return
        asyncio.run_coroutine_threadsafe(_cancel_all(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
