"""Connections to the processes of workers, and handles of objects that are stored in these
processes."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any

from colearn.errors import ModelLost

Call = Callable[..., Any]
"""Calls a method of a `ModelWorker` by name, waits, and returns the result or raises the error."""
_REPORTED = 20.0
"""Maximum number of seconds to wait for the report that a process was lost, after another process
has failed in an exchange."""


class Link:
    """Connection to one process. When a handle has been garbage-collected in this process, its
    object is freed in the worker's process before the next call."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._lock = threading.Lock()
        self.released: deque[int] = deque()

    def __call__(self, method: str, *args: Any) -> Any:
        with self._lock:
            numbers = [self.released.popleft() for _ in range(len(self.released))]
        if numbers:
            self._call("drop", numbers)
        return self._call(method, *args)


class WorkerLink:
    """Connection to all processes of a worker. The processes hold the same models and update them
    together.

    Errors: ModelLost if a process has ended; otherwise the first error that a process raises.
    """

    def __init__(self, calls: Sequence[Call]) -> None:
        self.processes = [Link(call) for call in calls]
        self._pool = ThreadPoolExecutor(len(calls)) if len(calls) > 1 else None

    def __call__(self, method: str, *args: Any) -> Any:
        """Call a method in every process and return the result of the first process."""
        return self.each(method, [args] * len(self.processes))[0]

    def each(self, method: str, args: Sequence[Sequence[Any]]) -> list[Any]:
        """Call a method in all processes concurrently, with separate arguments for each process.
        Returns the results in the order of the processes."""
        if self._pool is None:
            return [self.processes[0](method, *args[0])]
        calls = [
            self._pool.submit(process, method, *arguments)
            for process, arguments in zip(self.processes, args, strict=True)
        ]
        wait(calls, return_when=FIRST_EXCEPTION)
        if failures := [error for call in calls if call.done() and (error := call.exception())]:
            if not any(isinstance(error, ModelLost) for error in failures):
                wait(calls, timeout=_REPORTED)
            failures = [error for call in calls if call.done() and (error := call.exception())]
            raise next(
                (failure for failure in failures if isinstance(failure, ModelLost)), failures[0]
            )
        return [call.result() for call in calls]

    def close(self) -> None:
        """Free the threads; a thread that waits for a process ends when the process ends."""
        if self._pool is not None:
            self._pool.shutdown(wait=False)


class RemoteHandle:
    """Handle of an object that a worker's process stores as long as the handle exists."""

    def __init__(self, link: Link, number: int) -> None:
        self.link, self.number = link, number

    def __del__(self) -> None:
        self.link.released.append(self.number)


class WorkerHandle:
    """Handle of an object that every process of a worker stores as long as the handle exists."""

    def __init__(self, link: WorkerLink, numbers: Sequence[int]) -> None:
        pairs = zip(link.processes, numbers, strict=True)
        self._handles = [RemoteHandle(process, number) for process, number in pairs]

    @property
    def numbers(self) -> list[int]:
        """The number under which each process stores the object."""
        return [handle.number for handle in self._handles]
