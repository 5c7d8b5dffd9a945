"""One tree advances on its own, without waiting for any other: for slow tools and remote agents.

Within a tree a turn is still a turn: all its live nodes are asked at once, and then stepped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from colearn.contract import Ask, Spoken
from colearn.types import Node, Outcome

from .growth import Edge, Growth, Live
from .transition import transition

Say = Callable[[Ask], Awaitable[list[Spoken]]]
"""One list entry for each seed of the ask."""
Beside = Callable[..., Awaitable[Any]]
"""Runs a function that may be slow beside the event loop: (function, arguments)."""


class Follower(Protocol):
    """Is told how a tree grows."""

    async def stepped(self, at: Node[Any], outcome: Outcome[Any]) -> None:
        """A joint action was tried at `at`."""

    async def grown(self, node: Node[Any]) -> None:
        """A node was added; the root, too."""


async def advance(
    growth: Growth,
    say: Say,
    *,
    beside: Beside,
    step: Beside,
    follower: Follower | None = None,
) -> None:
    """Grow one tree to its end. `step` runs the task's transitions, `beside` its other functions.

    Errors: TaskError where the task breaks its contract; what `say` raises, in an ExceptionGroup.
    """
    live: list[Live] = await beside(growth.start)
    if follower is not None:
        await follower.grown(growth.nodes[0])
    while live:
        drawn = await _speak(growth, live, say)
        tried = [growth.edges(at, said) for at, said in zip(live, drawn, strict=True)]
        following: list[Live] = []
        for at, edges in zip(live, tried, strict=True):
            outcomes = await _step(edges, step)
            if follower is not None:
                for outcome in outcomes:
                    await follower.stepped(at.node, outcome)
            known = len(growth.nodes)
            following += await beside(growth.settle, at, edges, outcomes)
            if follower is not None:
                for node in growth.nodes[known:]:
                    await follower.grown(node)
        live = following


async def _speak(growth: Growth, live: list[Live], say: Say) -> list[dict[str, list[Spoken]]]:
    asked = [{ask.seat: ask for ask in growth.asks(at)} for at in live]
    async with asyncio.TaskGroup() as group:
        saying = [
            {seat: group.create_task(_awaited(say, ask)) for seat, ask in asks.items()}
            for asks in asked
        ]
    return [{seat: task.result() for seat, task in tasks.items()} for tasks in saying]


async def _awaited(say: Say, ask: Ask) -> list[Spoken]:
    return await say(ask)


async def _step(edges: list[Edge], step: Beside) -> list[Outcome[Any]]:
    return list(await asyncio.gather(*(step(transition, *edge.stepping) for edge in edges)))
