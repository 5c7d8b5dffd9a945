"""Turns of engines that must run one at a time."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from weakref import WeakValueDictionary


class Turns:
    """A lock for engines that must run one at a time, because they share a processor or the global
    state of a library."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._drawn = self._served = 0

    @property
    def another_waits(self) -> bool:
        """Whether another engine waits for its turn."""
        return self._drawn > self._served + 1

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Context manager that waits for the caller's turn (first come, first served) and ends the
        turn on exit."""
        with self._changed:
            number = self._drawn
            self._drawn += 1
            self._changed.wait_for(lambda: self._served == number)
        try:
            yield
        finally:
            with self._changed:
                self._served += 1
                self._changed.notify_all()


_turns: WeakValueDictionary[Hashable, Turns] = WeakValueDictionary()
_known = threading.Lock()


def turns_of(place: Hashable) -> Turns:
    """The `Turns` that all engines with the same place share."""
    with _known:
        turns = _turns.get(place)
        if turns is None:
            turns = _turns[place] = Turns()
        return turns
