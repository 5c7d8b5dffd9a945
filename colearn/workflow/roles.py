"""The roles of a workflow as its `run` calls them, with its tools, rewards and measures."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from colearn.errors import TaskError, nearest
from colearn.types import Sources

from .record import Payment
from .tool import Tool, ToolError

RESERVED = ("ask", "use", "reward", "measure")


class Answer(str):
    """What a role said: its text, which also knows the actions it was said in."""

    actions: Sources
    """As (turn, role); more than one where the role used tools in between."""
    call: int
    """Number of the (last) call."""

    @classmethod
    def of(cls, text: str, actions: Sources, call: int) -> Answer:
        """An answer to a call."""
        answer = cls(text)
        answer.actions, answer.call = actions, call
        return answer


class Recorder(Protocol):
    """What a team's calls go to: it answers them from the record, or waits for who is asked."""

    measured: dict[str, float]

    async def converse(
        self,
        role: str,
        prompt: str,
        after: Sequence[int] | None,
        fresh: bool,
        offered: tuple[str, ...],
        tool_calls: int,
        system: str | None,
    ) -> Answer:
        """A role's turn, with the tools that it calls in the middle of it."""

    async def use(self, tool: str, arguments: Mapping[str, Any] | ToolError) -> Any:
        """A tool's result."""

    def actions_of(self, role: str) -> Sources:
        """All that a role has said so far."""

    def pay(self, payment: Payment) -> None:
        """Note a reward."""


class Team:
    """Roles and tools are awaited by name: `await team.coder(prompt)`, `await team.search(query)`.

    Everything said to a team is recorded, so a run replays from its item and the answers.
    """

    def __init__(
        self,
        recorder: Recorder,
        roles: tuple[str, ...],
        tools: Mapping[str, Tool],
        measures: tuple[str, ...],
    ) -> None:
        self._recorder, self._roles, self._tools, self._measures = recorder, roles, tools, measures

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self._tools:
            return lambda *args, **given: self.use(name, *args, **given)
        if name in self._roles:
            return lambda prompt, **given: self.ask(name, prompt, **given)
        raise TaskError(
            f"workflow.run: no role or tool '{name}'; {nearest(name, {*self._roles, *self._tools})}"
        )

    async def ask(
        self,
        role: str,
        prompt: str,
        *,
        after: Answer | Iterable[Answer] | None = None,
        fresh: bool = True,
        tools: Iterable[str] = (),
        tool_calls: int = 4,
        system: str | None = None,
    ) -> Answer:
        """What `role` says to `prompt`, in a context of its own (`fresh=False`: in its last one).

        after: the answers that the prompt was made from. None: the latest that this branch of the
        program has received, directly or through tools; the executed graph and backward credit
        follow it.
        tools: those that the role may call itself, up to `tool_calls` times: it writes
        `<tool_call>{"name": ..., "arguments": {...}}</tool_call>` and is shown the result.

        system: the system text of the new context, in place of the role's own.

        Errors: TaskError for an unknown role or tool, a prompt that is no text, or a system text
        within a context.
        """
        if role not in self._roles:
            raise TaskError(f"workflow.run: no role '{role}'; {nearest(role, self._roles)}")
        offered = tuple(tools)
        for name in offered:
            if name not in self._tools:
                raise TaskError(f"workflow.run: no tool '{name}'; {nearest(name, self._tools)}")
        if not isinstance(prompt, str):
            raise TaskError(
                f"workflow.run: role '{role}' was given a {type(prompt).__name__}, must be str"
            )
        if system is not None and not fresh:
            raise TaskError(
                f"workflow.run: role '{role}' was given a system text within its context; leave "
                "fresh=False or the system text out"
            )
        made_from = None
        if after is not None:
            given = (after,) if isinstance(after, Answer) else tuple(after)
            made_from = tuple(sorted({answer.call for answer in given}))
        return await self._recorder.converse(
            role, prompt, made_from, fresh, offered, tool_calls, system
        )

    async def use(self, tool: str, *args: Any, **arguments: Any) -> Any:
        """What the tool gives; a `ToolError` (its text) where it fails or takes too long.

        Errors: TaskError for an unknown tool.
        """
        if tool not in self._tools:
            raise TaskError(f"workflow.run: no tool '{tool}'; {nearest(tool, self._tools)}")
        return await self._recorder.use(tool, self._tools[tool].bind(args, arguments))

    def reward(self, value: float, to: Answer | str | Iterable[Answer] | None = None) -> None:
        """Pay `value` to the team, to each of the answers given, or to all that a role has said.

        A reward that comes late (a marginal one, a format penalty found downstream) still belongs
        to the answer that earned it.

        Errors: TaskError for a number that is not finite or a role that has not spoken.
        """
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TaskError(f"workflow.run: reward {value!r} must be a number; use float(...)")
        if not math.isfinite(value):
            raise TaskError(f"workflow.run: reward is {value}, must be a finite number")
        actions: Sources | None = None
        if isinstance(to, Answer):
            actions = to.actions
        elif isinstance(to, str):
            actions = self._recorder.actions_of(to)
            if not actions:
                raise TaskError(
                    f"workflow.run: reward for role '{to}', which has said nothing; "
                    f"{nearest(to, self._roles)}"
                )
        elif to is not None:
            actions = tuple(action for answer in to for action in answer.actions)
        self._recorder.pay(Payment(value=float(value), actions=actions))

    def measure(self, **found: float) -> None:
        """Set metrics of this episode; what is not set keeps its value in `measures`.

        Errors: TaskError for a name that `measures` does not hold.
        """
        for name in found:
            if name not in self._measures:
                raise TaskError(
                    f"workflow.run: measure '{name}' is not in `measures`; "
                    f"{nearest(name, self._measures)}"
                )
        self._recorder.measured.update({name: float(value) for name, value in found.items()})
