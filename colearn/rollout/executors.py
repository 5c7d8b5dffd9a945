"""Executor that runs a task's methods in the calling thread, beside an event loop."""

from __future__ import annotations

import asyncio
from _thread import start_new_thread
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Executor, Future
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from colearn.contract.worker import Ended, accepted_error, hand_over

Result = TypeVar("Result")
Call = tuple["asyncio.Future[Any]", Callable[..., Any], tuple[Any, ...]]
"""A queued call: (future that receives the result, function, arguments)."""
Beside = Callable[..., Awaitable[Any]]
"""Function that runs another, possibly slow, function outside the event loop. The arguments are the
slow function and the slow function's arguments."""


async def run_in(pool: Executor, work: Callable[..., Any], *arguments: Any) -> Any:
    """Run a function in a pool and return its result."""
    return await asyncio.get_running_loop().run_in_executor(pool, partial(_call, work, *arguments))


def _call(work: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return work(*arguments)
    except StopIteration as error:
        raise accepted_error(error) from error


class CallingThread:
    """Runs a coroutine in a new event loop. Functions that the coroutine awaits through this object
    run in the calling thread.

    The event loop has a separate thread, because a notebook's thread already has an event loop, and
    a task's methods may start another event loop. The task's methods run in the calling thread,
    which is usually the main thread. A reward function can set an alarm only in the main thread.
    Results of functions that are queued together are returned together.
    """

    def __init__(self) -> None:
        self._calls: SimpleQueue[Call | None] = SimpleQueue()
        self._results: deque[Ended] = deque()
        """Results that the event loop has not received yet."""
        self._task: asyncio.Task[Any] | None = None
        """The coroutine, once the loop has it."""
        self._cancelled = self._ended = False

    async def __call__(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function in the calling thread and return its result."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._calls.put((future, work, arguments))
        return await future

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Returns the coroutine's result; an interruption of this thread cancels the coroutine."""
        outcome: Future[Result] = Future()

        async def main() -> Result:
            task = self._task = asyncio.create_task(work)
            if self._cancelled:
                task.cancel()
            return await task

        def loop() -> None:
            try:
                outcome.set_result(asyncio.run(main()))
            except BaseException as error:  # noqa: BLE001 - raised again in the calling thread
                outcome.set_exception(error)
            self._ended = True
            self._calls.put(None)

        try:
            # not threading.Thread: an interruption of its start() can leave a lock locked, and then
            # the thread never runs
            start_new_thread(loop, ())
            while (call := self._next()) is not None:
                self._results.append(_ended(*call))
        except BaseException:
            self._cancel()
            raise
        return outcome.result()

    def _cancel(self) -> None:
        """Cancel the coroutine and wait for its end. A coroutine that has not yet begun is never
        started."""
        self._cancelled = True  # before the task is read, as main() stores the task and reads this
        if self._task is None:
            return
        with suppress(RuntimeError):  # the loop has ended
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)
        while not self._ended:
            self._calls.get()

    def withdraw(self) -> list[asyncio.Future[Any]]:
        """Remove the calls that have not begun, and return their futures. Thread-safe."""
        futures: list[asyncio.Future[Any]] = []
        with suppress(Empty):
            while (call := self._calls.get_nowait()) is not None:
                futures.append(call[0])
            self._calls.put(None)  # the coroutine has ended
        return futures

    def return_results(self) -> None:
        """Pass the results of calls that have ended to the event loop. Thread-safe."""
        results: list[Ended] = []
        with suppress(IndexError):
            while True:
                results.append(self._results.popleft())
        hand_over(results)

    def _next(self) -> Call | None:
        """Wait for a call; return None after the coroutine has ended. Before this thread waits, the
        event loop receives all results."""
        try:
            call = self._calls.get_nowait()
        except Empty:
            self.return_results()
            call = self._calls.get()
        return None if self._ended else call  # nobody awaits the calls of an ended coroutine


def _ended(future: asyncio.Future[Any], work: Callable[..., Any], arguments: Any) -> Ended:
    try:
        return future, work(*arguments), None
    except Exception as error:  # noqa: BLE001 - it belongs to the awaiting coroutine
        return future, None, error
