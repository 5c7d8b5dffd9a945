"""Batching of concurrent calls: turns a function that answers a whole batch into a coroutine that
answers one request."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from .worker import Worker, hand_over

Request = TypeVar("Request")
Answer = TypeVar("Answer")
Item = TypeVar("Item")


class Tick(Generic[Item]):
    """Collects the items that coroutines add in one iteration of their event loop, and forwards
    these items together.

    If branches advance in lockstep, their requests therefore arrive as one batch, in the order of
    the branches.
    """

    def __init__(self, receive: Callable[[list[Item]], None]) -> None:
        self._receive = receive
        self._added: dict[asyncio.AbstractEventLoop, list[Item]] = {}

    def add(self, item: Item) -> None:
        """Adds an item; must be called from a running event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._added:
            self._added[loop] = []
            loop.call_soon(lambda: self._receive(self._added.pop(loop)))
        self._added[loop].append(item)


@dataclass(eq=False, slots=True)
class _Call(Generic[Request, Answer]):
    request: Request
    answer: asyncio.Future[tuple[Answer, float]]


class _Batches(Generic[Request, Answer]):
    """An engine whose step answers all waiting calls."""

    def __init__(self, answer: Callable[[Sequence[Request]], Sequence[Answer]]) -> None:
        self._answer = answer
        self._calls: deque[_Call[Request, Answer]] = deque()
        self._answered: list[tuple[_Call[Request, Answer], tuple[Answer, float]]] = []
        self.at_work: list[_Call[Request, Answer]] = []
        self.completed = 0

    @property
    def waiting(self) -> int:
        return len(self._calls)

    @property
    def busy(self) -> bool:
        return bool(self._calls)

    def submit(self, job: _Call[Request, Answer]) -> None:
        self._calls.append(job)

    def step(self) -> None:
        calls = [self._calls.popleft() for _ in range(len(self._calls))]
        self.at_work = [call for call in calls if not call.answer.cancelled()]
        if self.at_work:
            started = time.perf_counter()
            answers = self._answer([call.request for call in self.at_work])
            seconds = time.perf_counter() - started
            timed = ((answer, seconds) for answer in answers)
            self._answered += zip(self.at_work, timed, strict=True)
            self.completed += len(self.at_work)
        self.at_work = []

    def take_events(self) -> list[tuple[_Call[Request, Answer], tuple[Answer, float]]]:
        answered, self._answered = self._answered, []
        return answered

    def drop(self, jobs: Iterable[_Call[Request, Answer]]) -> list[_Call[Request, Answer]]:
        dropped, self.at_work = list(jobs), []
        return dropped

    def drop_all(self) -> list[_Call[Request, Answer]]:
        return self.drop([*self.at_work, *self._calls])


class BatchQueue(Generic[Request, Answer]):
    """Answers requests in a thread by calling `answer` on a whole batch.

    Requests made in one iteration of the event loop form a batch. Requests that arrive while a
    batch is being answered form the next batch. Queues with equal `place` answer their batches one
    at a time. `prepared` returns a context manager that is entered while the queue answers batches.
    """

    def __init__(
        self,
        answer: Callable[[Sequence[Request]], Sequence[Answer]],
        place: Callable[[], Hashable],
        prepared: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self._worker: Worker[_Call[Request, Answer], tuple[Answer, float]] = Worker(
            _Batches(answer), deliver=_deliver, failed=_fail, place=place, prepared=prepared
        )
        self._tick: Tick[_Call[Request, Answer]] = Tick(lambda calls: self._worker.submit(*calls))

    async def submit(self, request: Request) -> tuple[Answer, float]:
        """Returns the answer to a request, and the time in seconds that its batch took.

        Errors: any error that `answer` raises for the batch.
        """
        call: _Call[Request, Answer] = _Call(request, asyncio.get_running_loop().create_future())
        self._tick.add(call)
        return await call.answer


def _deliver(answered: Sequence[tuple[_Call[Any, Any], tuple[Any, float]]]) -> None:
    hand_over((call.answer, answer, None) for call, answer in answered)


def _fail(calls: Sequence[_Call[Any, Any]], error: BaseException | None) -> None:
    ended = error or RuntimeError("the worker has ended")
    hand_over((call.answer, None, ended) for call in calls)
