"""Where a task's steps run in lockstep: one after the other, or those of a turn at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import Any

from colearn.errors import TaskError

IDLE = 0.05
"""Seconds without work of the processor from which a step is one that waits, if they are also more
than half of its time."""


class TurnSteps:
    """Runs steps in the calling thread. Those of a task that allows it (`Services.steps_at_once`)
    run at once in `threads` as soon as one was seen to wait: for a judge, a server, a program.

    Threads do not make a step faster that computes, and a step that sets an alarm needs the main
    thread: the first such step ends the use of threads. Outcomes are the same, since the random
    numbers of a step depend on its place in the tree alone.
    """

    def __init__(self, caller: Executor, threads: Executor, *, at_once: bool) -> None:
        self._caller, self._threads = caller, threads
        self._allowed, self._waits = at_once, False
        self._first = asyncio.Lock()

    async def __call__(self, work: Callable[..., Any], *arguments: Any) -> Any:
        if self._allowed and not self._waits:
            async with self._first:
                if not self._waits:
                    outcome, idle, seconds = await _run(self._caller, _timed, work, arguments)
                    self._waits = idle > max(IDLE, seconds / 2)
                    return outcome
        if self._allowed:
            try:
                return await _run(self._threads, work, *arguments)
            except TaskError as error:
                if not _needs_main_thread(error):
                    raise
                self._allowed = False
        return await _run(self._caller, work, *arguments)


async def _run(pool: Executor, work: Callable[..., Any], *arguments: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(pool, partial(work, *arguments))


def _timed(work: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, float, float]:
    """The outcome, the seconds in which this thread did nothing, and all seconds."""
    began, worked = time.perf_counter(), time.thread_time()
    outcome = work(*arguments)
    seconds = time.perf_counter() - began
    return outcome, seconds - (time.thread_time() - worked), seconds


def _needs_main_thread(error: BaseException | None) -> bool:
    """Whether `signal` refused a call outside of the main thread."""
    while error is not None:
        if isinstance(error, ValueError) and "main thread" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False
