"""Where a task's methods run: in the calling thread, or steps that wait at once in threads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

from colearn.errors import TaskError

Result = TypeVar("Result")

IDLE = 0.05
"""Seconds without work of the processor from which a step is one that waits, if they are also more
than half of its time."""


async def run_in(pool: Executor, work: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a function that a pool runs."""
    return await asyncio.get_running_loop().run_in_executor(pool, partial(work, *arguments))


class CallingThread(Executor):
    """Runs a coroutine in a new event loop, and submitted functions in the calling thread.

    The loop has its own thread, because a notebook's thread has a loop already and a task's methods
    may start one. They run in the calling thread, the main one as a rule: only there a reward
    function can set an alarm.
    """

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def call() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    result = function(*arguments, **named)
                except Exception as error:  # noqa: BLE001 - it belongs to the awaiting coroutine
                    future.set_exception(error)
                else:
                    future.set_result(result)

        self._calls.put(call)
        return future

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Returns the coroutine's result; an interruption of this thread cancels it."""
        begun: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Result]]] = Future()

        async def main() -> Result:
            task = asyncio.create_task(work)
            begun.set_result((asyncio.get_running_loop(), task))
            return await task

        with ThreadPoolExecutor(1, thread_name_prefix="loop") as thread:
            done = thread.submit(asyncio.run, main())
            done.add_done_callback(lambda _: self._calls.put(None))
            try:
                while (call := self._calls.get()) is not None:
                    call()
            except BaseException:
                loop, task = begun.result()
                loop.call_soon_threadsafe(task.cancel)
                raise
        return done.result()


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
                    outcome, idle, seconds = await run_in(self._caller, _timed, work, arguments)
                    self._waits = idle > max(IDLE, seconds / 2)
                    return outcome
        if self._allowed:
            try:
                return await run_in(self._threads, work, *arguments)
            except TaskError as error:
                if not _needs_main_thread(error):
                    raise
                self._allowed = False
        return await run_in(self._caller, work, *arguments)


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
