"""Runs calls to an object in a separate thread, with a time limit."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

_Call = tuple[Callable[[], Any], Future[Any]] | None


class NotReturned(Exception):
    """Raised when a call has not returned within its time limit; the call may still be running."""


class CallStopped(Exception):
    """Raised when a call has raised SystemExit, KeyboardInterrupt or another BaseException;
    `__cause__` is that exception."""


class OwnThread:
    """A daemon thread that runs calls one after another, so that code that never returns blocks
    neither the caller nor the end of the process.

    All calls to an object run in the same thread, as SQLite connections and browsers require.
    """

    def __init__(self, name: str) -> None:
        self._calls: queue.SimpleQueue[_Call] = queue.SimpleQueue()
        threading.Thread(target=_serve, args=(self._calls,), name=name, daemon=True).start()

    def run(self, work: Callable[[], Any], seconds: float | None = None) -> Any:
        """The result of a call.

        Errors: NotReturned after `seconds`; CallStopped; an Exception of the call is raised
        unchanged.
        """
        future: Future[Any] = Future()
        self._calls.put((work, future))
        try:
            return future.result(seconds)
        except TimeoutError:
            if future.done():
                raise  # the call's own
            raise NotReturned(f"no result within {seconds:g} seconds") from None

    def end(self) -> None:
        """End the thread after the running call."""
        self._calls.put(None)


def _serve(calls: queue.SimpleQueue[_Call]) -> None:
    while (call := calls.get()) is not None:
        work, future = call
        try:
            result = work()
        except Exception as error:  # noqa: BLE001 - raised again where the call was made
            future.set_exception(error)
        except BaseException as error:  # noqa: BLE001 - it must not end the caller
            stopped = CallStopped(type(error).__name__)
            stopped.__cause__ = error
            future.set_exception(stopped)
        else:
            future.set_result(result)
        del call, work, future  # an idle thread keeps nothing alive
