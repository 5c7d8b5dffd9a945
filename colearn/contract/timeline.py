"""Timeline: records the periods in which each generator and model of a run works. Any thread can
add a period."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

Activity = Literal["generate", "transfer", "update"]
"""Kind of work: sampling of actions, transfer of weights to a generator, or a model's forward and
backward passes and optimiser steps."""
Method = TypeVar("Method", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class BusyTime:
    """A period in which one generator or model works; start and end are in seconds of one clock."""

    who: str
    activity: Activity
    start: float
    end: float


class Timeline:
    """The work periods of a run; any thread can add a period."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._ended: list[BusyTime] = []
        self._running: dict[object, BusyTime] = {}

    @contextmanager
    def span(self, name: str, activity: Activity) -> Iterator[None]:
        """Context manager that records the time of its block as work of `name`."""
        key, start = object(), self._clock()
        with self._lock:
            self._running[key] = BusyTime(name, activity, start, start)
        try:
            yield
        finally:
            with self._lock:
                del self._running[key]
                self._ended.append(BusyTime(name, activity, start, self._clock()))

    def take(self, start: float, end: float) -> list[BusyTime]:
        """Returns the work periods between two times, clipped to this interval. Periods that ended
        no later than `end` are then removed from the timeline."""
        with self._lock:
            spans = self._ended + [replace(span, end=end) for span in self._running.values()]
            self._ended = [span for span in self._ended if span.end > end]
        return [
            replace(span, start=max(span.start, start), end=min(span.end, end))
            for span in spans
            if span.end > start and span.start < end
        ]


class Timed:
    """An object whose work periods a timeline can record."""

    timeline: Timeline | None = None
    timed_as: str = ""
    """Name of the object in the timeline."""

    def busy(self, activity: Activity) -> AbstractContextManager[None]:
        """Context manager that records the time of its block as work of this object."""
        if self.timeline is None:
            return nullcontext()
        return self.timeline.span(self.timed_as, activity)


def updates(method: Method) -> Method:
    """Decorates a method of a `Timed` object whose calls are part of an update."""

    @functools.wraps(method)
    def run(self: Timed, *args: Any, **named: Any) -> Any:
        with self.busy("update"):
            return method(self, *args, **named)

    return run  # type: ignore[return-value]
