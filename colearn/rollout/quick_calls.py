"""Executor of the free order: quick calls run one after another in the calling thread, calls that
wait run in threads."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

from colearn.contract.worker import hand_over
from colearn.errors import TaskError

from .executors import CallingThread, run_in
from .idle import IDLE, needs_main_thread, waits

Function = Callable[..., Any]

_WITHDRAWN = object()
"""Result of a call that was queued for the calling thread and has not begun."""


class QuickCalls:
    """Runs a task's functions in the calling thread until a function has been observed to wait.

    Queued calls run without a switch of threads, and their results return together. The requests
    that follow therefore reach an engine together. A function waits if one of its calls takes
    longer than `IDLE`, or if its calls have been idle for longer than `IDLE` and for at least half
    of their duration. All queued calls then move to threads, as do later calls of the function, so
    a slow call delays others by `IDLE`, once.
    """

    def __init__(self, caller: CallingThread) -> None:
        self._caller = caller
        self._waiting_functions: set[Function] = set()
        self._main_functions: set[Function] = set()
        """Functions that need the main thread, because they set an alarm."""
        self._idle: defaultdict[Function, float] = defaultdict(float)
        self._seconds: defaultdict[Function, float] = defaultdict(float)
        self._running: tuple[Function, float] | None = None
        """The function that runs in the calling thread, and the time at which its call began."""
        self._pending = 0
        """Number of calls that the calling thread has not answered."""
        self._timer: asyncio.TimerHandle | None = None

    async def __call__(self, threads: Executor, work: Function, *arguments: Any) -> Any:
        """Run a function in the calling thread, or in `threads` if the function waits or the
        calling thread is blocked; return the result."""
        function = getattr(work, "__func__", work)
        while True:
            if self._quick(function):
                outcome = await self._queued(function, work, arguments)
                if outcome is not _WITHDRAWN:
                    return outcome
            if function not in self._main_functions:
                try:
                    return await run_in(threads, work, *arguments)
                except TaskError as error:
                    if not needs_main_thread(error):
                        raise
                    self._main_functions.add(function)

    def _quick(self, function: Function) -> bool:
        if function in self._main_functions:
            return True
        return function not in self._waiting_functions and self._blocking_function() is None

    async def _queued(self, function: Function, work: Function, arguments: tuple[Any, ...]) -> Any:
        self._pending += 1
        if self._timer is None:
            self._watch()
        try:
            return await self._caller(self._timed, function, work, arguments)
        finally:
            self._pending -= 1

    def _timed(self, function: Function, work: Function, arguments: tuple[Any, ...]) -> Any:
        """Run a call in the calling thread, and measure how long it is idle."""
        began, worked = time.perf_counter(), time.thread_time()
        self._running = function, began
        try:
            return work(*arguments)
        finally:
            self._running = None
            seconds = time.perf_counter() - began
            self._seconds[function] += seconds
            self._idle[function] += seconds - (time.thread_time() - worked)
            if waits(self._idle[function], self._seconds[function]):
                self._move(function)

    def _watch(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(IDLE, self._check)

    def _check(self) -> None:
        """Return the results so far; move the queued calls if the calling thread is blocked."""
        self._timer = None
        self._caller.return_results()
        function = self._blocking_function()
        if function is not None:
            self._move(function)
        if self._pending:
            self._watch()

    def _blocking_function(self) -> Function | None:
        """Return the function that has occupied the calling thread for longer than `IDLE`."""
        running = self._running
        if running is None or time.perf_counter() - running[1] < IDLE:
            return None
        return running[0]

    def _move(self, function: Function) -> None:
        """Move all queued calls, and later calls of a function that waits, to threads."""
        self._waiting_functions.add(function)
        hand_over([(future, _WITHDRAWN, None) for future in self._caller.withdraw()])
