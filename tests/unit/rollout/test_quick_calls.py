"""The free order's calls: quick ones in the calling thread, those that wait in threads."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from colearn.errors import TaskError
from colearn.rollout import quick_calls
from colearn.rollout.executors import Beside, CallingThread, run_in
from colearn.rollout.quick_calls import QuickCalls

SLOW = 0.2
"""Seconds, many times the duration of a quick call."""
PATIENCE = 600.0


def run(work: Callable[[Beside], Coroutine[Any, Any, Any]]) -> Any:
    """The result of a coroutine function that receives the executor."""
    caller = CallingThread()
    threads: Executor
    with ThreadPoolExecutor(16, thread_name_prefix="pool") as threads:
        return caller.run(work(partial(QuickCalls(caller), threads)))


def where(*_: Any) -> str:
    return threading.current_thread().name.partition("_")[0]


def slow(*_: Any) -> str:
    time.sleep(SLOW)
    return where()


def alarm() -> str:
    """Sets an alarm. A task's call fails with its own error, whose cause `signal` raised."""
    try:
        signal.signal(signal.SIGALRM, signal.getsignal(signal.SIGALRM))
    except ValueError as error:
        raise TaskError("task.step: raised ValueError") from error
    return where()


def slow_alarm() -> str:
    time.sleep(SLOW)
    return alarm()


def test_quick_calls_run_in_the_calling_thread_and_return_together() -> None:
    """Also the first, which ends before the last begins."""
    threads, at = list[str](), list[int]()

    async def work(calls: Beside) -> None:
        turns = 0

        async def branch(number: int) -> None:
            threads.append(await calls(where, number))
            at.append(turns)

        tasks = [asyncio.create_task(branch(number)) for number in range(8)]
        while not all(task.done() for task in tasks):
            turns += 1
            await asyncio.sleep(0)

    run(work)
    assert threads == ["MainThread"] * 8
    assert len(set(at)) == 1


def test_calls_that_wait_behind_a_slow_one_move_to_threads() -> None:
    """The first call ends only when the second, which is queued behind it, has run."""
    second_ran = threading.Event()

    def first() -> bool:
        return second_ran.wait(PATIENCE)

    async def work(calls: Beside) -> list[Any]:
        return await asyncio.gather(calls(first), calls(second_ran.set), calls(where))

    assert run(work) == [True, None, "pool"]


def test_calls_that_need_the_main_thread_wait_there_for_a_slow_one() -> None:
    """They are moved, fail, and are queued again."""

    async def work(calls: Beside) -> list[str]:
        return await asyncio.gather(calls(slow), calls(alarm), calls(alarm))

    assert run(work) == ["MainThread"] * 3


def test_results_that_are_there_do_not_wait_for_a_slow_call() -> None:
    """The second call ends only when the first one's result has arrived, and runs in the calling
    thread, too."""
    arrived = threading.Event()

    async def work(calls: Beside) -> bool:
        async def first() -> None:
            await calls(where)
            arrived.set()

        _, waited = await asyncio.gather(first(), calls(arrived.wait, PATIENCE))
        return bool(waited)

    assert run(work)


def test_a_function_that_was_slow_runs_in_threads_and_another_in_the_calling_thread() -> None:
    async def work(calls: Beside) -> list[str]:
        return [await calls(slow), await calls(slow), await calls(where)]

    assert run(work) == ["MainThread", "pool", "MainThread"]


def test_while_the_calling_thread_is_blocked_other_functions_run_in_threads_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """None of them is queued behind the slow call first."""
    released, queued = threading.Event(), list[Any]()
    withdraw = CallingThread.withdraw

    def withdrawn(caller: CallingThread) -> list[asyncio.Future[Any]]:
        futures = withdraw(caller)
        queued.extend(futures)
        return futures

    monkeypatch.setattr(CallingThread, "withdraw", withdrawn)

    async def work(calls: Beside) -> list[str]:
        blocked = asyncio.create_task(calls(released.wait, PATIENCE))
        await asyncio.sleep(SLOW)
        threads = [await calls(where) for _ in range(3)]
        released.set()
        await blocked
        return threads

    assert run(work) == ["pool"] * 3
    assert queued == []


def test_a_slow_call_that_outlives_the_coroutine_does_not_keep_the_thread() -> None:
    released = threading.Event()

    async def work(calls: Beside) -> None:
        running = asyncio.create_task(calls(released.wait, PATIENCE))
        await asyncio.sleep(SLOW / 10)
        assert not running.done()
        threading.Timer(SLOW, released.set).start()
        raise LookupError

    def ends() -> None:
        with pytest.raises(LookupError):
            run(work)

    thread = threading.Thread(target=ends, daemon=True)
    thread.start()
    thread.join(timeout=PATIENCE)
    assert not thread.is_alive()


class Clock:
    """The clocks of the executor, which only the calls advance."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall = self.processor = 0.0
        clocks = SimpleNamespace(perf_counter=lambda: self.wall, thread_time=lambda: self.processor)
        monkeypatch.setattr(quick_calls, "time", clocks)

    def threads(self, *, wall: float, processor: float) -> list[str]:
        """The threads of calls that take these times, one after another."""

        def call() -> str:
            self.wall += wall
            self.processor += processor
            return where()

        async def work(calls: Beside) -> list[str]:
            return [await calls(call) for _ in range(8)]

        names: list[str] = run(work)
        return names


def test_idle_times_of_quick_calls_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Idle for 0.015 s each: after four calls for 0.06 s, more than 0.05 s."""
    threads = Clock(monkeypatch).threads(wall=0.02, processor=0.005)
    assert threads == ["MainThread"] * 4 + ["pool"] * 4


def test_a_function_that_mainly_computes_stays_in_the_calling_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Idle for 0.015 s of 0.04 s each."""
    threads = Clock(monkeypatch).threads(wall=0.04, processor=0.025)
    assert threads == ["MainThread"] * 8


def test_a_slow_function_that_sets_an_alarm_returns_to_the_main_thread() -> None:
    async def work(calls: Beside) -> list[str]:
        return [await calls(slow_alarm) for _ in range(3)]

    assert run(work) == ["MainThread"] * 3


def test_a_call_in_a_thread_that_raises_stop_iteration_is_answered() -> None:
    """An asyncio future refuses this error: the caller waited for ever."""

    def empty() -> None:
        raise StopIteration("empty")

    async def called() -> None:
        with ThreadPoolExecutor(1) as pool:
            await asyncio.wait_for(run_in(pool, empty), 600)

    with pytest.raises(RuntimeError, match=r"^raised StopIteration\('empty'\)$"):
        asyncio.run(called())
