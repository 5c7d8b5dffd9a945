"""Barrier for lockstep order, in which all branches request the actions of a turn together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence


class Barrier:
    """Holds branches until all branches wait, then releases the branches in the order of trees and
    paths.

    With the barrier, the order of requests in a queue does not depend on timing, so batches are
    repeatable. Every tree begins as one branch.
    """

    def __init__(self, trees: int) -> None:
        self.turn = 0
        """Number of times that the barrier has released the branches."""
        self._branches = trees
        self._waiting: dict[tuple[int, tuple[int, ...]], asyncio.Future[None]] = {}

    async def wait(self, tree: int, path: tuple[int, ...]) -> None:
        """Waits, in the tree with the index `tree` at the node with the path `path`, for the other
        branches of all trees."""
        released: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[tree, path] = released
        self._release()
        await released

    def split(self, count: int) -> None:
        """Replaces a branch by `count` branches; `count` is 0 if the branch has ended."""
        self._branches += count - 1
        self._release()

    def _release(self) -> None:
        if len(self._waiting) < self._branches:
            return
        self.turn += 1
        waiting, self._waiting = self._waiting, {}
        # later: the last branch, too, must give way, or its requests would come a moment before
        asyncio.get_running_loop().call_soon(_open, [waiting[place] for place in sorted(waiting)])


def _open(waiting: Sequence[asyncio.Future[None]]) -> None:
    for released in waiting:
        if not released.cancelled():
            released.set_result(None)
