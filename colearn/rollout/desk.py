"""Request queue of one table: requests that arrive join the table's running batch."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from functools import partial

from colearn.contract import Ask, Spoken, Table

Answer = tuple[list[Spoken], float]
"""An ask's actions, and the seconds from the batch that it joined to its answer."""


class Place:
    """Tables that take turns."""

    def __init__(self) -> None:
        self._free = asyncio.Lock()
        self.wanted = 0
        """Number of tables that wait for their turn."""

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Waits for the turn, and ends it."""
        self.wanted += 1
        try:
            await self._free.acquire()
        finally:
            self.wanted -= 1
        try:
            yield
        finally:
            self._free.release()


class Desk:
    """Hands requests to a table from an event loop.

    The table answers in a thread for as long as requests arrive. If another table waits for the
    place, it receives no further requests until its next turn.
    """

    def __init__(self, table: Table, place: Place, threads: Executor, *, greedy: bool) -> None:
        self.table, self.place, self.threads, self.greedy = table, place, threads, greedy
        self.waiting: deque[tuple[Ask, asyncio.Future[Answer]]] = deque()
        self._answering: asyncio.Task[None] | None = None
        """The task that will answer the requests in `waiting`."""

    async def say(self, ask: Ask) -> Answer:
        """Answers one request. Errors: those of the table."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.waiting.append((ask, answer))
        if self._answering is None:
            self._answering = asyncio.create_task(self._answer())
        return await answer

    async def _answer(self) -> None:
        loop = asyncio.get_running_loop()
        while self.waiting:
            async with self.place.turn():
                turn = _Turn(self, loop)
                speak = partial(self.table.speak_continuously, turn, greedy=self.greedy)
                speaking = loop.run_in_executor(self.threads, speak)
                await asyncio.wait((speaking,))
            if error := speaking.exception():
                turn.fail(error)
        self._answering = None


class _Turn:
    """The arrivals of one turn of a table."""

    def __init__(self, desk: Desk, loop: asyncio.AbstractEventLoop) -> None:
        self._desk, self._loop = desk, loop
        self._taken = 0
        self._open: dict[int, tuple[asyncio.Future[Answer], float]] = {}
        """Unanswered requests by number, with the times when they were taken."""

    @property
    def waiting(self) -> int:
        ends = self._taken and self._desk.place.wanted
        return 0 if ends else len(self._desk.waiting)

    def take(self) -> Sequence[Ask]:
        asks = []
        for _ in range(self.waiting):
            ask, answer = self._desk.waiting.popleft()
            if not answer.cancelled():
                self._open[self._taken] = answer, time.perf_counter()
                self._taken += 1
                asks.append(ask)
        return asks

    def answer(self, number: int, answer: list[Spoken]) -> None:
        asked, started = self._open.pop(number)
        seconds = time.perf_counter() - started
        self._loop.call_soon_threadsafe(self._deliver, asked, answer, seconds)

    def fail(self, error: BaseException) -> None:
        """Raises an error of the table where its requests, taken or waiting, are awaited."""
        asked = [answer for answer, _ in self._open.values()]
        asked += [answer for _, answer in self._desk.waiting]
        self._desk.waiting.clear()
        for answer in asked:
            if not answer.done():
                answer.set_exception(error)

    @staticmethod
    def _deliver(asked: asyncio.Future[Answer], answer: list[Spoken], seconds: float) -> None:
        if not asked.cancelled():
            asked.set_result((answer, seconds))
