"""Which results a point of the program comes after: happened-before, by branch."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

Task = asyncio.Task[Any]


class Causes:
    """The results that each branch (an asyncio task) has received, itself or through others.

    A branch starts with what its parent had received, and a parent has received all that its ended
    branches had. Of those results a call was made from the latest: those that none of the others
    was made from.
    """

    def __init__(self) -> None:
        self._seen: dict[Task, set[int]] = {}
        self._past: dict[int, frozenset[int]] = {}

    def spawned(self, task: Task, parent: Task | None) -> None:
        """A branch begins; when it ends, what it knew is its parent's."""
        self._seen[task] = set(self._seen[parent]) if parent is not None else set()
        if parent is not None:
            task.add_done_callback(lambda ended: self._seen[parent].update(self._seen[ended]))

    def latest(self, task: Task) -> tuple[int, ...]:
        """What a call of this branch is made from, by number of call."""
        seen = self._seen[task]
        covered = {number for later in seen for number in self._past[later]}
        return tuple(sorted(seen - covered))

    def asked(self, number: int, after: Iterable[int]) -> None:
        """A call, and what it is made from."""
        self._past[number] = frozenset(after).union(*(self._past[earlier] for earlier in after))

    def told(self, task: Task, number: int) -> None:
        """A branch has received the result of a call."""
        self._seen[task].add(number)
