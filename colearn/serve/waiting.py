"""The event loop's end of a job: what the engine tells, in a queue of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from colearn.generate.job import Done, Event, Failed, Job
from colearn.wire.errors import ServeError

_HELD = 2048
"""Events that a client which does not read may leave waiting."""


class Told:
    """Receives a job's events; a client that has gone or reads too slowly ends the job."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Event] = asyncio.Queue()
        self.job: Job | None = None

    def receive(self, event: Event) -> None:
        assert self.job is not None
        if self._queue.qsize() >= _HELD and not isinstance(event, Done | Failed):
            self.job.cancelled = True
            event = Failed("the client reads too slowly")
        self._queue.put_nowait(event)

    async def events(self) -> AsyncIterator[Event]:
        """Until the job is done.

        Errors: ServeError 500 or 503 where it fails.
        """
        while True:
            event = await self._queue.get()
            if isinstance(event, Failed):
                status = 503 if "shutting down" in event.message else 500
                raise ServeError(status, event.message)
            yield event
            if isinstance(event, Done):
                return

    async def done(self) -> None:
        """Wait for the end. Errors: as in `events`."""
        async for _ in self.events():
            pass
