"""What is known of one run of a workflow: a state that replays, forks and pickles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from colearn.types import Sources

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A role or a tool that a run asks."""

    number: int
    """In order of asking, from 0."""
    name: str
    text: str
    """A role's prompt; a tool's arguments as JSON."""
    tool: bool = False
    fresh: bool = True
    """A role's new context; False goes on in the one it has."""
    after: tuple[int, ...] = ()
    """The calls whose results this call was made from, by number."""
    system: str | None = None
    """A role's system text in this context, in place of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A call and what came of it."""

    call: Call
    result: Any
    turn: int | None = None
    """t of the action; None for a tool, which is not part of the team."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Payment:
    """One `team.reward`."""

    value: float
    actions: Sources | None = None
    """Who earned it, each in full; None: the team."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowState(Generic[Item]):
    """Item and record determine the rest: what the run waits for, has paid and has measured."""

    item: Item
    turn: int = 0
    """Turns played."""
    events: tuple[Event, ...] = ()
    """In the order in which the run was told of them."""
    waiting: tuple[Call, ...] = ()
    """Roles that are asked and have not answered; of several calls of one role the first is next,
    the others queue."""
    finished: bool = False
    payments: tuple[Payment, ...] = ()
    measured: Mapping[str, float] = field(default_factory=dict)

    def next_calls(self) -> dict[str, Call]:
        """By role, the call that is answered at this turn."""
        first: dict[str, Call] = {}
        for call in self.waiting:
            first.setdefault(call.name, call)
        return first

    def sources(self, call: Call) -> Sources:
        """The actions that a call was made from, through the tools between them."""
        known = {event.call.number: event for event in self.events}
        return tuple(sorted(set(_actions(call.after, known))))


def _actions(numbers: tuple[int, ...], known: Mapping[int, Event]) -> Iterator[tuple[int, str]]:
    for number in numbers:
        event = known[number]
        if event.turn is None:
            yield from _actions(event.call.after, known)
        else:
            yield event.turn, event.call.name
