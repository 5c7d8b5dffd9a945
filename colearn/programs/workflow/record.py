"""Workflow state: a replayable, picklable record of calls and results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from colearn.contract.types import Sources

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A run's call of a role or a tool."""

    number: int
    """Position in the order of calls, from 0."""
    name: str
    text: str
    """A role's prompt; a tool's arguments as JSON."""
    tool: bool = False
    fresh: bool = True
    """True opens a new context of the role; False continues its last one."""
    after: tuple[int, ...] = ()
    """Numbers of the calls whose results this call depends on."""
    system: str | None = None
    """System text of this context, which replaces the role's system text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """A call and its result."""

    call: Call
    result: Any
    turn: int | None = None
    """Turn of the action; None for a tool, which is not part of the team."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Payment:
    """One call of `team.reward`."""

    value: float
    actions: Sources | None = None
    """Actions, each of which earns the full value; None: the team earns the value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowState(Generic[Item]):
    """A run's item and record, which determine its waiting calls, rewards and metrics."""

    item: Item
    turn: int = 0
    """Number of turns played."""
    events: tuple[CallResult, ...] = ()
    """Results in the order in which the run received them."""
    waiting: tuple[Call, ...] = ()
    """Unanswered calls of roles; several calls of one role are answered in order."""
    finished: bool = False
    payments: tuple[Payment, ...] = ()
    measured: Mapping[str, float] = field(default_factory=dict)

    def next_calls(self) -> dict[str, Call]:
        """Returns, by role, the call that is answered at this turn."""
        first: dict[str, Call] = {}
        for call in self.waiting:
            first.setdefault(call.name, call)
        return first

    def sources(self, call: Call) -> Sources:
        """Returns the actions that a call depends on, directly or through tools."""
        known = {event.call.number: event for event in self.events}
        return tuple(sorted(set(_actions(call.after, known))))


def _actions(
    numbers: tuple[int, ...], known: Mapping[int, CallResult]
) -> Iterator[tuple[int, str]]:
    for number in numbers:
        event = known[number]
        if event.turn is None:
            yield from _actions(event.call.after, known)
        else:
            yield event.turn, event.call.name
