"""Deterministic event loop of a workflow, without clock, input or output.

A workflow waits only for answers and tool results, which are supplied one at a time. After each of
them, the loop runs until no callback is ready. The next calls are therefore a function of the item
and the results so far, so the workflow can be replayed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context
from typing import Any

from colearn.errors import TaskError


class Loop(asyncio.AbstractEventLoop):
    """Runs callbacks in order; `spawned` is called with every task and its parent."""

    def __init__(
        self, spawned: Callable[[asyncio.Task[Any], asyncio.Task[Any] | None], None]
    ) -> None:
        self._ready: deque[asyncio.Handle] = deque()
        self._spawned = spawned
        self._open: list[asyncio.Task[Any]] = []
        self._failed: BaseException | None = None

    def run_ready(self) -> None:
        """Runs until every task waits for an external result.

        Errors: the exception of a task that is not awaited.
        """
        asyncio.events._set_running_loop(self)
        try:
            while self._ready:
                handle = self._ready.popleft()
                if not handle.cancelled():
                    handle._run()
        finally:
            asyncio.events._set_running_loop(None)
        if self._failed is not None:
            raise self._failed

    def close(self) -> None:
        """Cancels waiting tasks, so that no coroutine stays open."""
        for task in self._open:
            task.cancel()
        self._failed = None
        self.run_ready()

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self, coro: Any, *, name: str | None = None, context: Context | None = None, **_: Any
    ) -> asyncio.Task[Any]:
        """Starts a branch of the workflow."""
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, name=name, context=context)
        self._open.append(task)
        task.add_done_callback(self._open.remove)
        parent = asyncio.current_task(self) if asyncio.events._get_running_loop() else None
        self._spawned(task, parent)
        return task

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Stores the first error of a branch that is not awaited."""
        error = context.get("exception")
        if isinstance(error, BaseException) and self._failed is None:
            self._failed = error

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return asyncio.events._get_running_loop() is self

    def is_closed(self) -> bool:
        """Returns False: the loop holds no resources."""
        return False

    def time(self) -> float:
        """Raises TaskError: the loop has no clock."""
        raise _no_clock()

    def call_later(self, *_: Any, **__: Any) -> Any:  # type: ignore[override]
        """Raises TaskError: the loop has no clock."""
        raise _no_clock()

    call_at = call_later  # type: ignore[assignment]

    def run_in_executor(self, *_: Any, **__: Any) -> Any:  # type: ignore[override]
        """Raises TaskError: slow work belongs in a tool, whose result is recorded."""
        raise TaskError(
            "workflow.run: starts a thread; do slow work in a tool, whose result is kept"
        )


def _no_clock() -> TaskError:
    return TaskError(
        "workflow.run: sleeps or sets a timeout; a run has no clock, so that it replays: "
        "wait inside a tool and give the tool a timeout"
    )
