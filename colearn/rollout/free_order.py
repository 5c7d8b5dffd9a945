"""Asynchronous episodes that share the request queues of their players."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Hashable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from typing import Any

from colearn.contract import Ask, AsyncTable, Spoken, Table

from .advance import advance
from .counts import Counts
from .growth import Growth

AT_ONCE = 256
"""Maximum number of threads; most of them wait for slow calls."""


class Free:
    """Advances branches independently: a slow step, tool or table delays no other branch.

    A free table answers all pending requests in one batch, so batches depend on timing. Samples do
    not, except for rounding within a batch.
    """

    def __init__(self, *, greedy: bool = False, pool: Executor | None = None) -> None:
        self.greedy, self.pool = greedy, pool
        self.counts = Counts()

    def grow(self, growths: Sequence[Growth]) -> None:
        """Grow every tree to its end.

        Errors: TaskError if the task breaks its contract, ConfigError from a generator.
        """
        with ThreadPoolExecutor(1) as thread:  # a notebook already runs an event loop
            thread.submit(asyncio.run, self._all(growths)).result()

    async def _all(self, growths: Sequence[Growth]) -> None:
        with (
            ThreadPoolExecutor(AT_ONCE, thread_name_prefix="table") as threads,
            ThreadPoolExecutor(AT_ONCE, thread_name_prefix="step") as steps,
        ):
            desks: dict[Table, _Desk] = {}
            places: dict[Hashable, asyncio.Lock] = {}

            async def say(ask: Ask) -> list[Spoken]:
                table = ask.player.table
                if isinstance(table, AsyncTable):
                    return await self._answer(table, ask)
                if table not in desks:
                    free = places.setdefault(table.place, asyncio.Lock())
                    desks[table] = _Desk(table, free, threads, self.counts, greedy=self.greedy)
                return await desks[table].say(ask)

            beside = partial(_run, threads)
            step = partial(_run, steps if self.pool is None else self.pool)
            try:
                async with asyncio.TaskGroup() as group:
                    for growth in growths:
                        group.create_task(advance(growth, say, beside=beside, step=step))
            except BaseExceptionGroup as failures:
                raise _first(failures) from None
        self.counts.joint_actions += sum(len(growth.nodes) - 1 for growth in growths)

    async def _answer(self, table: AsyncTable, ask: Ask) -> list[Spoken]:
        """Answer one request by itself: a slow reply delays no other request."""
        started = time.perf_counter()
        spoken = await table.say(ask, greedy=self.greedy)
        self.counts.response_seconds.append(time.perf_counter() - started)
        self.counts.spoke(spoken)
        return spoken


class _Desk:
    """Request queue of one table; all requests pending when it becomes free form one batch."""

    def __init__(
        self,
        table: Table,
        free: asyncio.Lock,
        threads: Executor,
        counts: Counts,
        *,
        greedy: bool,
    ) -> None:
        self.table, self.free, self.threads = table, free, threads
        self.counts, self.greedy = counts, greedy
        self.waiting: list[Ask] = []
        self.batch: asyncio.Task[list[list[Spoken]]] | None = None
        """The task that will answer the requests in `waiting`."""

    async def say(self, ask: Ask) -> list[Spoken]:
        place = len(self.waiting)
        self.waiting.append(ask)
        if self.batch is None:
            self.batch = asyncio.create_task(self._speak())
        answers = await asyncio.shield(self.batch)
        return answers[place]

    async def _speak(self) -> list[list[Spoken]]:
        async with self.free:
            asks, self.waiting, self.batch = self.waiting, [], None
            started = time.perf_counter()
            speak = partial(self.table.speak, asks, greedy=self.greedy)
            answers: list[list[Spoken]] = await _run(self.threads, speak)
        self.counts.response_seconds.append(time.perf_counter() - started)
        for spoken in answers:
            self.counts.spoke(spoken)
        return answers


async def _run(pool: Executor, work: Any, *arguments: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(pool, work, *arguments)


def _first(error: BaseException) -> BaseException:
    """The first error within nested exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
