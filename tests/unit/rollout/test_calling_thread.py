"""Functions that a coroutine runs in the thread that waits for it."""

from __future__ import annotations

import asyncio
import faulthandler
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any

import pytest

from colearn.rollout import executors
from colearn.rollout.executors import CallingThread


def test_functions_run_in_the_thread_that_waits_and_give_their_results() -> None:
    caller = CallingThread()

    async def work() -> list[str]:
        names = [caller(lambda: threading.current_thread().name) for _ in range(3)]
        return await asyncio.gather(*names)

    assert caller.run(work()) == [threading.current_thread().name] * 3


def test_a_call_that_nobody_awaits_any_more_does_not_keep_the_thread() -> None:
    """The first function runs on while the coroutine ends; the second still waits then."""
    caller, released = CallingThread(), threading.Event()

    async def work() -> str:
        first = asyncio.create_task(caller(released.wait, 600))
        await asyncio.sleep(0.1)
        second = asyncio.create_task(caller(time.sleep, 0.0))
        await asyncio.sleep(0.1)
        assert not (first.done() or second.done())
        threading.Timer(0.3, released.set).start()
        return "ended"

    with ThreadPoolExecutor(1) as thread:
        result = thread.submit(caller.run, work())
        try:
            assert result.result(timeout=600) == "ended"
        finally:
            caller._calls.put(None)  # lets the thread of a failed test go


class Stopped(KeyboardInterrupt):
    """An interruption of this thread."""


def stopping_at(number: int, reached: list[str]) -> Any:
    """Tracer that raises Stopped at a line, counted over those of the module that this thread
    executes."""

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename != executors.__file__:
            return None
        if event == "line":
            reached.append(f"{frame.f_code.co_name}: {frame.f_lineno}")
            if len(reached) == number:
                raise Stopped
        return trace

    return trace


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_an_interruption_at_any_line_cancels_the_coroutine_and_is_raised() -> None:
    """Also before the loop's thread has started, and after the coroutine has ended."""

    async def work(caller: CallingThread) -> None:
        await caller(lambda: None)

    for number in range(1, 1000):
        caller, reached = CallingThread(), []
        faulthandler.dump_traceback_later(60, exit=True)  # a thread that hangs cannot be joined
        try:
            sys.settrace(stopping_at(number, reached))
            caller.run(work(caller))
        except Stopped:
            continue
        finally:
            sys.settrace(None)
            faulthandler.cancel_dump_traceback_later()
        assert len(reached) < number, f"not raised: {reached[number - 1]}"
        return
