"""Asynchronous growth of one tree, independent of other trees: for slow tools and remote agents.

Branches of a tree also advance independently. A branch waits for its siblings only if the shape
compares them to select which continue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from colearn.contract import Ask, Spoken
from colearn.types import Node, Outcome

from .growth import Edge, Growth, Live, Tried
from .transition import transition

Say = Callable[[Ask], Awaitable[list[Spoken]]]
"""Answers an ask with one entry for each of its seeds."""
Beside = Callable[..., Awaitable[Any]]
"""Runs a possibly slow function outside the event loop: (function, arguments)."""


class GrowthFollower(Protocol):
    """Receives events of a growing tree."""

    async def stepped(self, at: Node[Any], outcome: Outcome[Any]) -> None:
        """A joint action was executed at node `at`."""

    async def grown(self, node: Node[Any]) -> None:
        """A node was added, including the root."""


async def advance(
    growth: Growth,
    say: Say,
    *,
    beside: Beside,
    step: Beside,
    follower: GrowthFollower | None = None,
) -> None:
    """Grow one tree to its end. `step` runs the task's transitions, `beside` its other methods.

    Errors: TaskError if the task breaks its contract; an ExceptionGroup with errors of `say`.
    """
    live: list[Live] = await beside(growth.start)
    if follower is not None:
        await follower.grown(growth.nodes[0])
    await _Branches(growth, say, beside, step, follower).go_on(live)


@dataclass(frozen=True, slots=True)
class _Branches:
    growth: Growth
    say: Say
    beside: Beside
    step: Beside
    follower: GrowthFollower | None

    async def go_on(self, live: list[Live]) -> None:
        """Grow all branches to their ends: a single one in a loop, several in a task each."""
        while len(live) == 1:
            (at,) = live
            said = await self._speak(at)
            edges = self.growth.edges(at, said)
            if not self.growth.compares and len(edges) > 1:
                await _all(self._follow(at, edge) for edge in edges)
                return
            tried: list[Tried] = []
            while edges:
                tried += await self._step(at, edges)
                edges = self.growth.edges(at, said, tried)
            live = await self._settle(at, tried)
        await _all(self.go_on([at]) for at in live)

    async def _follow(self, at: Live, edge: Edge) -> None:
        await self.go_on(await self._settle(at, await self._step(at, [edge])))

    async def _speak(self, at: Live) -> dict[str, list[Spoken]]:
        asks = self.growth.asks(at)
        said = await _all(_awaited(self.say, ask) for ask in asks)
        return {ask.seat: spoken for ask, spoken in zip(asks, said, strict=True)}

    async def _step(self, at: Live, edges: list[Edge]) -> list[Tried]:
        steps = (self.step(transition, *edge.stepping) for edge in edges)
        outcomes: list[Outcome[Any]] = list(await asyncio.gather(*steps))
        if self.follower is not None:
            for outcome in outcomes:
                await self.follower.stepped(at.node, outcome)
        return list(zip(edges, outcomes, strict=True))

    async def _settle(self, at: Live, tried: list[Tried]) -> list[Live]:
        """Add the nodes of the executed joint actions."""
        known = len(self.growth.nodes)
        following: list[Live] = await self.beside(self.growth.settle, at, tried)
        if self.follower is not None:
            for node in self.growth.nodes[known:]:
                await self.follower.grown(node)
        return following


async def _all(waiting: Iterable[Coroutine[Any, Any, Any]]) -> list[Any]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one) for one in waiting]
    return [task.result() for task in tasks]


async def _awaited(say: Say, ask: Ask) -> list[Spoken]:
    return await say(ask)
