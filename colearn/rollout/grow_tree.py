"""Asynchronous growth of one tree. Each branch advances independently, unless the rollout shape
compares siblings to select the branches that continue."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from colearn.contract import ActionRequest, Round, TokenAnswer
from colearn.contract.checked_task import CheckedTask
from colearn.contract.types import Node, Outcome

from .executors import Beside
from .growth import Branch, Growth

Act = Callable[[ActionRequest], Awaitable[list[TokenAnswer]]]
"""Asynchronous function that answers a request, with one answer for each of the request's seeds."""


class GrowthListener(Protocol):
    """Receives events of a growing tree."""

    async def stepped(self, at: Node[Any], outcome: Outcome[Any]) -> None:
        """Called after a joint action was executed at node `at`."""

    async def grown(self, node: Node[Any]) -> None:
        """Called after a node (possibly the root) was added."""


async def advance(
    growth: Growth,
    act: Act,
    *,
    beside: Beside,
    step: Beside,
    listener: GrowthListener | None = None,
) -> None:
    """Grow one tree from its root until all branches have ended. `step` runs the task's
    transitions, and `beside` runs the task's other methods.

    Errors: TaskError if the task violates its contract; any error of `act`. After the first error,
    all other requests are cancelled.
    """
    live: list[Branch] = await beside(growth.start)
    if listener is not None:
        await listener.grown(growth.nodes[0])
    try:
        async with asyncio.TaskGroup() as group:
            _Branches(growth, act, beside, step, listener, group).go_on(live)
    except BaseExceptionGroup as failures:
        raise first_error(failures) from None


@dataclass(frozen=True, slots=True)
class _Branches:
    """The branches of a tree. Each turn of a branch is a separate asyncio task, so that memory held
    for earlier turns can be freed."""

    growth: Growth
    act: Act
    beside: Beside
    step: Beside
    listener: GrowthListener | None
    group: asyncio.TaskGroup

    def go_on(self, live: Sequence[Branch]) -> None:
        """Continue a branch at these nodes. If there are no nodes, the branch has ended."""
        self._split(self._turn(at) for at in live)

    def _split(self, branches: Iterable[Coroutine[Any, Any, None]]) -> None:
        for branch in branches:
            self.group.create_task(branch)

    async def _turn(self, at: Branch) -> None:
        candidates = await self._act(at)
        tried, children = list[Round](), list[Branch]()
        while (following := self.growth.next_round(at, candidates, tried)) is not None:
            planned = self.growth.children(at, candidates, following, len(children))
            if not self.growth.compares and len(planned) > 1:
                self._split(self._execute(at, child) for child in planned)
                return
            executed = await self._step(at, planned)
            tried.append(self.growth.credited(following, executed))
            children += executed
        self.go_on(await self._settle(at, children, tried))

    async def _execute(self, at: Branch, child: Branch) -> None:
        self.go_on(await self._settle(at, await self._step(at, [child])))

    async def _act(self, at: Branch) -> dict[str, list[TokenAnswer]]:
        requests = self.growth.requests(at)
        async with asyncio.TaskGroup() as group:  # an error withdraws the other requests
            answers = [group.create_task(_awaited(self.act, request)) for request in requests]
        return {
            request.seat: answer.result() for request, answer in zip(requests, answers, strict=True)
        }

    async def _step(self, at: Branch, planned: Sequence[Branch]) -> list[Branch]:
        """Execute joint actions."""
        steps = [
            self.step(CheckedTask.transition, *self.growth.step_arguments(child))
            for child in planned
        ]
        outcomes: list[Outcome[Any]] = (
            [await steps[0]] if len(steps) == 1 else await asyncio.gather(*steps)
        )
        if self.listener is not None:
            for outcome in outcomes:
                await self.listener.stepped(at[0], outcome)
        pairs = zip(planned, outcomes, strict=True)
        return [self.growth.with_outcome(child, outcome) for child, outcome in pairs]

    async def _settle(
        self, at: Branch, children: Sequence[Branch], tried: Sequence[Round] = ()
    ) -> list[Branch]:
        """Add the nodes of the executed joint actions."""
        known = len(self.growth.nodes)
        following: list[Branch] = await self.beside(self.growth.settle, at, children, tried)
        if self.listener is not None:
            for node in self.growth.nodes[known:]:
                await self.listener.grown(node)
        return following


async def _awaited(act: Act, request: ActionRequest) -> list[TokenAnswer]:
    return await act(request)


def first_error(error: BaseException) -> BaseException:
    """Return the first error in nested exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
