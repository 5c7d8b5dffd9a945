"""Functions that a coroutine runs in the thread that waits for it."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from colearn.rollout.executors import CallingThread


def test_functions_run_in_the_thread_that_waits_and_give_their_results() -> None:
    caller = CallingThread()

    async def work() -> list[str]:
        names = [caller(lambda: threading.current_thread().name) for _ in range(3)]
        return await asyncio.gather(*names)

    assert caller.run(work()) == [threading.current_thread().name] * 3


def test_a_call_that_nobody_awaits_any_more_does_not_keep_the_thread() -> None:
    """The first function runs on while the coroutine ends; the second still waits then."""
    caller = CallingThread()

    async def work() -> str:
        first = asyncio.create_task(caller(time.sleep, 0.5))
        await asyncio.sleep(0.1)
        second = asyncio.create_task(caller(time.sleep, 0.0))
        await asyncio.sleep(0.1)
        assert not (first.done() or second.done())
        return "ended"

    with ThreadPoolExecutor(1) as thread:
        result = thread.submit(caller.run, work())
        try:
            assert result.result(timeout=10) == "ended"
        finally:
            caller._calls.put(None)  # lets the thread of a failed test go
