"""The `team` argument of a workflow's `run`: roles, tools, rewards and metrics."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from colearn.contract.types import Sources
from colearn.errors import TaskError, nearest
from colearn.text.real_number import real_number

from .record import Payment
from .replay import Replay
from .role_turn import Answer, play_turn
from .tool import Tool

_METHODS = ("ask", "use", "reward", "measure")
_SHOWN = 60
"""Maximum number of characters of a name in an error."""


def role_problem(name: str) -> str | None:
    """Describes why a text cannot name a role or a tool, which `Team` has as an attribute; None if
    it can."""
    if name.isidentifier() and not name.startswith("_") and name not in _METHODS:
        return None
    label = repr(name if len(name) <= _SHOWN else f"{name[:_SHOWN]}...")
    return (
        f"{label} cannot name a role or tool; use an identifier other than {', '.join(_METHODS)}, "
        "without an underscore in front"
    )


class Team:
    """Roles and tools, awaited by name: `await team.coder(prompt)`, `await team.search(query)`.

    All calls are recorded, so a run replays from its item and the answers.
    """

    def __init__(
        self,
        replay: Replay,
        roles: tuple[str, ...],
        tools: Mapping[str, Tool],
        measures: tuple[str, ...],
    ) -> None:
        self._replay, self._roles, self._tools, self._measures = replay, roles, tools, measures

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self._tools:
            return lambda *args, **arguments: self.use(name, *args, **arguments)
        if name in self._roles:
            return lambda prompt, **options: self.ask(name, prompt, **options)
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
        """Asks `role` and returns its answer; `fresh=False` continues the role's last context.

        after: answers that the prompt depends on, for the executed graph and backward credit. None:
        the latest answers that this branch of the program has received, directly or through tools.
        tools: names of tools that the role may call itself, up to `tool_calls` times. The role
        writes `<tool_call>{"name": ..., "arguments": {...}}</tool_call>` and observes the result.
        system: system text of the new context, which replaces the role's system text.

        Errors: TaskError for an unknown role or tool, a prompt that is not a string, or a system
        text with `fresh=False`.
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
            sources = (after,) if isinstance(after, Answer) else tuple(after)
            made_from = tuple(sorted({answer.call for answer in sources}))
        return await play_turn(
            self._replay,
            role,
            prompt,
            after=made_from,
            fresh=fresh,
            system=system,
            offered={name: self._tools[name] for name in offered},
            tool_calls=tool_calls,
        )

    async def use(self, tool: str, /, *args: Any, **arguments: Any) -> Any:
        """Returns the tool's result, or a `ToolError` (a string) if it fails or takes too long.

        Errors: TaskError for an unknown tool.
        """
        if tool not in self._tools:
            raise TaskError(f"workflow.run: no tool '{tool}'; {nearest(tool, self._tools)}")
        return await self._replay.use(tool, self._tools[tool].bind(args, arguments))

    def reward(self, value: float, to: Answer | str | Iterable[Answer] | None = None) -> None:
        """Pays `value` to the team, to each of the given answers, or to all answers of a role.

        A late reward (such as a marginal contribution, or a format penalty from a downstream role)
        is credited to the answer that earned it.

        Errors: TaskError for a number that is not finite, a role without an answer, or no answers.
        """
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TaskError(f"workflow.run: reward {value!r} must be a number; use float(...)")
        if not abs(value) <= sys.float_info.max:  # math.isfinite overflows on a huge integer
            text = value if isinstance(value, float) else "an integer beyond a float's range"
            raise TaskError(f"workflow.run: reward is {text}, must be a finite number")
        actions: Sources | None = None
        if isinstance(to, Answer):
            actions = to.actions
        elif isinstance(to, str):
            actions = self._replay.actions_of(to)
            if not actions:
                raise TaskError(
                    f"workflow.run: reward for role '{to}', which has no answer yet; "
                    f"{nearest(to, self._roles)}"
                )
        elif to is not None:
            actions = tuple(action for answer in to for action in answer.actions)
            if not actions:
                raise TaskError(
                    "workflow.run: reward for no answer, so nobody is paid; give `to` an answer, "
                    "or leave it out to pay the team"
                )
        self._replay.pay(Payment(value=float(value), actions=actions))

    def measure(self, **values: float) -> None:
        """Sets metrics of this episode; the others keep their values.

        Errors: TaskError for a name that is not in `measures`, and for a value that is no number.
        """
        for name, value in values.items():
            if name not in self._measures:
                raise TaskError(
                    f"workflow.run: measure '{name}' is not in `measures`; "
                    f"{nearest(name, self._measures)}"
                )
            try:
                self._replay.measured[name] = real_number(value)
            except TypeError as error:
                raise TaskError(f"workflow.run: measure '{name}' is {error}, no number") from None
