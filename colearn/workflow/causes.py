"""Happened-before tracking: which call results each asyncio branch has received."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

Task = asyncio.Task[Any]


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
        seen = self._seen[task]
        covered = {number for later in seen for number in self._past[later]}
        return tuple(sorted(seen - covered))

    def asked(self, number: int, after: Iterable[int]) -> None:
        self._past[number] = frozenset(after).union(*(self._past[earlier] for earlier in after))

    def received(self, task: Task, number: int) -> None:
        self._seen[task].add(number)
