"""Executor whose work is done by the thread that waits for an event loop in another thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any, TypeVar

Result = TypeVar("Result")


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
