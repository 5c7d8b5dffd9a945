"""Asyncio side of a decode job: receives the engine's events through a queue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from colearn.deploy.client.protocol.errors import ServeError
from colearn.engines.job import Done, Event, Failed, Job

_HELD = 2048
"""Maximum number of unread events; the job of a slower client is cancelled."""


class JobEvents:
    """Queues a job's events; cancels the job if its client reads too slowly."""

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
        """Yields events until the job is done.

        Errors: ServeError 500 or 503 if the job fails.
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
        """Waits until the job has ended. Errors: as in `events`."""
        async for _ in self.events():
            pass
