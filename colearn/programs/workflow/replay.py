"""Replay of a workflow against its record, up to the workflow's next unanswered calls."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any

from colearn.contract.types import Sources
from colearn.errors import TaskError

from .loop import Loop
from .record import Call, CallResult, Payment
from .tool import Tool, ToolError

Task = asyncio.Task[Any]


class Replay:
    """A run in progress: its calls, and the branch that waits for each result."""

    main: Task

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self.causes = Causes()
        # asyncio's base class raises NotImplementedError for every method that a run cannot use
        self.loop = Loop(self.causes.spawned)  # type: ignore[abstract]
        self.tools = tools
        self.calls: list[Call] = []
        self.waiting: dict[int, tuple[asyncio.Future[Any], Task]] = {}
        self.events: list[CallResult] = []
        self.payments: list[Payment] = []
        self.measured: dict[str, float] = {}

    def start(self, main: Coroutine[Any, Any, None]) -> None:
        """Starts the run, up to its first calls."""
        self.main = self.loop.create_task(main)
        self._settle()

    def tell(self, event: CallResult) -> None:
        """Delivers one result and runs until the workflow waits again.

        Errors: TaskError if the run's calls differ from the record.
        """
        call = self.calls[event.call.number] if event.call.number < len(self.calls) else None
        if call != event.call or call.number not in self.waiting:
            raise TaskError(
                f"workflow.run: does not replay: call {event.call.number} was to "
                f"'{event.call.name}' and is now to '{call.name if call else 'nobody'}' or says "
                "something else; derive all that is random from the item, or put it into a tool"
            )
        future, task = self.waiting.pop(call.number)
        self.events.append(event)
        self.causes.received(task, call.number)
        future.set_result(event)
        self._settle()

    def open_tools(self) -> list[Call]:
        return [self.calls[number] for number in self.waiting if self.calls[number].tool]

    def open_roles(self) -> tuple[Call, ...]:
        return tuple(self.calls[n] for n in sorted(self.waiting) if not self.calls[n].tool)

    def actions_of(self, role: str) -> Sources:
        return tuple(
            (event.turn, role)
            for event in self.events
            if event.turn is not None and event.call.name == role
        )

    def pay(self, payment: Payment) -> None:
        self.payments.append(payment)

    async def use(self, tool: str, arguments: Mapping[str, Any] | ToolError) -> Any:
        """Returns a copy of a tool's result."""
        if isinstance(arguments, ToolError):
            return arguments
        event = await self.call(tool, self.tools[tool].spell(arguments), None, tool=True)
        return copy.deepcopy(event.result)

    async def call(
        self,
        name: str,
        text: str,
        after: Sequence[int] | None,
        *,
        tool: bool = False,
        fresh: bool = True,
        system: str | None = None,
    ) -> CallResult:
        """Returns the result of a role or tool call, once the record or a turn provides it."""
        task = asyncio.current_task(self.loop)
        assert task is not None, "a run is a task"
        made_from = self.causes.latest(task) if after is None else tuple(after)
        call = Call(
            number=len(self.calls),
            name=name,
            text=text,
            tool=tool,
            fresh=fresh,
            after=made_from,
            system=system,
        )
        self.calls.append(call)
        self.causes.asked(call.number, made_from)
        future: asyncio.Future[CallResult] = self.loop.create_future()
        self.waiting[call.number] = future, task
        return await future

    def _settle(self) -> None:
        self.loop.run_ready()
        if self.main.done() and not self.main.cancelled() and self.main.exception() is not None:
            error = self.main.exception()
            assert error is not None
            raise error


class Causes:
    """Tracks the results that each branch (an asyncio task) has received, directly or indirectly.

    A branch inherits its parent's results when it starts, and passes all its results to the parent
    when it ends. The sources of a call are the branch's maximal results: those that no other result
    of the branch depends on.
    """

    def __init__(self) -> None:
        self._seen: dict[Task, set[int]] = {}
        self._past: dict[int, frozenset[int]] = {}

    def spawned(self, task: Task, parent: Task | None) -> None:
        """Registers a branch; when the branch ends, its parent receives its results."""
        self._seen[task] = set(self._seen[parent]) if parent is not None else set()
        if parent is not None:
            task.add_done_callback(lambda ended: self._seen[parent].update(self._seen[ended]))

    def latest(self, task: Task) -> tuple[int, ...]:
        """Returns the sources of the branch's next call, as call numbers."""
        numbers = self._seen[task]
        covered = {number for later in numbers for number in self._past[later]}
        return tuple(sorted(numbers - covered))

    def asked(self, number: int, after: Iterable[int]) -> None:
        self._past[number] = frozenset(after).union(*(self._past[earlier] for earlier in after))

    def received(self, task: Task, number: int) -> None:
        self._seen[task].add(number)
