"""The clock of a workflow: an event loop without time and without input or output.

Everything that a workflow waits for is a role's answer or a tool's result, and those are handed to
it from outside, one at a time. Between two of them the loop runs until nothing is ready, so what a
workflow asks next is a function of the item and of what it was told: it replays.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any

from colearn.errors import TaskError


class Loop(asyncio.AbstractEventLoop):
    """First come, first served; `spawned` hears of every task and of the task that started it."""

    def __init__(
        self, spawned: Callable[[asyncio.Task[Any], asyncio.Task[Any] | None], None]
    ) -> None:
        self._ready: deque[asyncio.Handle] = deque()
        self._spawned = spawned
        self._open: list[asyncio.Task[Any]] = []
        self._failed: BaseException | None = None

    def run_ready(self) -> None:
        """Until every task waits for something from outside.

        Errors: what a task that nobody awaits raised.
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
        """End what still waits, so that no coroutine is left open."""
        for task in self._open:
            task.cancel()
        self._failed = None
        self.run_ready()

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Next in the row."""
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        """Something to be told."""
        return asyncio.Future(loop=self)

    def create_task(
        self, coro: Any, *, name: str | None = None, context: Context | None = None, **_: Any
    ) -> asyncio.Task[Any]:
        """A branch of the workflow."""
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, name=name, context=context)
        self._open.append(task)
        task.add_done_callback(self._open.remove)
        parent = asyncio.current_task(self) if asyncio.events._get_running_loop() else None
        self._spawned(task, parent)
        return task

    def start(self, main: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """The workflow itself."""
        return self.create_task(main)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep the first error of a branch that nobody awaits."""
        error = context.get("exception")
        if isinstance(error, BaseException) and self._failed is None:
            self._failed = error

    def get_debug(self) -> bool:
        """Off."""
        return False

    def is_running(self) -> bool:
        """While `run_ready` runs."""
        return asyncio.events._get_running_loop() is self

    def is_closed(self) -> bool:
        """It holds nothing that would have to be closed."""
        return False

    def time(self) -> float:
        """There is no time here."""
        raise _no_clock()

    def call_later(self, *_: Any, **__: Any) -> Any:  # type: ignore[override]
        """There is no time here."""
        raise _no_clock()

    def call_at(self, *_: Any, **__: Any) -> Any:  # type: ignore[override]
        """There is no time here."""
        raise _no_clock()

    def run_in_executor(self, *_: Any, **__: Any) -> Any:  # type: ignore[override]
        """Work belongs into a tool, whose result is kept for the replay."""
        raise TaskError(
            "workflow.run: starts a thread; do slow work in a tool, whose result is kept"
        )


def _no_clock() -> TaskError:
    return TaskError(
        "workflow.run: sleeps or sets a timeout; a run has no clock, so that it replays: "
        "wait inside a tool and give the tool a timeout"
    )
