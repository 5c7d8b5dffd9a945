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
from .desk import Desk, Place
from .growth import Growth

AT_ONCE = 256
"""Maximum number of threads; most of them wait for slow calls."""


class Free:
    """Advances branches independently: a slow step, tool or table delays no other branch.

    Requests join the batch that their table is answering, so batches depend on timing. Samples do
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
            desks: dict[Table, Desk] = {}
            places: dict[Hashable, Place] = {}

            async def say(ask: Ask) -> list[Spoken]:
                table = ask.player.table
                if isinstance(table, AsyncTable):
                    return await self._answer(table, ask)
                if table not in desks:
                    place = places.setdefault(table.place, Place())
                    desks[table] = Desk(table, place, threads, self.counts, greedy=self.greedy)
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


async def _run(pool: Executor, work: Any, *arguments: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(pool, work, *arguments)


def _first(error: BaseException) -> BaseException:
    """The first error within nested exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
