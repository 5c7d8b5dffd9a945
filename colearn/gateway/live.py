"""A live episode: the place where a program's requests and the grower's answers meet."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from colearn.wire.errors import ServeError
from colearn.wire.schema import ChatRequest

MOST_WAITING = 64
"""Requests of one episode that may wait for an answer."""


@dataclass(slots=True, eq=False)
class Asked:
    """A request that waits."""

    agent: str
    body: ChatRequest
    name: str = field(default_factory=lambda: f"chatcmpl-{secrets.token_hex(12)}")
    answer: Future[Mapping[str, Any]] = field(default_factory=Future)


@dataclass(frozen=True, slots=True)
class Paid:
    """A reward that the program gave; at most one of `agent` and `request` is set."""

    value: float
    agent: str | None = None
    request: str | None = None


class Live:
    """One run of a program. Its methods may be called from any thread.

    `name` holds the secret by which the program reaches it.
    """

    def __init__(self, number: int, agents: Sequence[str], item: Any) -> None:
        self.name = f"{number}-{secrets.token_urlsafe(18)}"
        self.agents, self.item = tuple(agents), item
        self.failure: str | None = None
        self.result: Any = None
        self.over = False
        self.ended = False
        """The program came to its own end."""
        self.stop: Callable[[], None] = _nothing
        """Ends the program, if it still runs."""
        self._turn = 0
        self._changed = threading.Condition()
        self._queue: list[Asked] = []
        self._open: dict[str, Asked] = {}
        self._paid: list[Paid] = []
        self._answered: dict[str, str] = {}
        """By request, the agent."""

    def ask(self, agent: str, body: ChatRequest) -> Asked:
        """Errors: ServeError 404 for an unknown agent, 410 after the end, 429 for a flood."""
        if agent not in self.agents:
            raise ServeError(404, f"no such agent; there is {', '.join(self.agents)}")
        asked = Asked(agent, body)
        with self._changed:
            self._check_open()
            if len(self._open) >= MOST_WAITING:
                raise ServeError(429, f"more than {MOST_WAITING} requests of this episode wait")
            self._queue.append(asked)
            self._open[asked.name] = asked
            self._changed.notify_all()
        return asked

    def withdraw(self, asked: Asked) -> None:
        """The client has gone: nobody waits for this answer any more."""
        with self._changed:
            self._open.pop(asked.name, None)
            if asked in self._queue:
                self._queue.remove(asked)

    def pay(self, paid: Paid) -> None:
        """Errors: ServeError 404 for an unknown agent or request, 410 after the end."""
        with self._changed:
            self._check_open()
            if paid.agent is not None and paid.agent not in self.agents:
                raise ServeError(404, f"no such agent; there is {', '.join(self.agents)}")
            if paid.agent is not None and paid.agent not in self._answered.values():
                raise ServeError(409, "this agent has said nothing yet that could be rewarded")
            if paid.request is not None and paid.request not in self._answered:
                raise ServeError(404, "no such call in this episode; give a completion's id")
            self._paid.append(paid)

    def end(self, *, result: Any = None, failure: str | None = None, ended: bool = True) -> None:
        """The program is over; later requests are 410."""
        with self._changed:
            if self.over:
                return
            self.over, self.result, self.failure = True, result, failure
            self.ended = ended
            waiting, self._queue, self._open = list(self._open.values()), [], {}
            self._changed.notify_all()
        for asked in waiting:
            asked.answer.set_exception(_gone())

    def close(self, failure: str | None = None) -> None:
        """End the episode and its program."""
        self.end(failure=failure, ended=False)
        self.stop()

    def wait(self, seconds: float, agents: frozenset[str] = frozenset()) -> None:
        """Until the program asks (all of `agents`, if any are named) or is over."""
        ends = time.monotonic() + seconds
        with self._changed:
            while not self.over:
                asking = {asked.agent for asked in self._queue}
                if asking and agents <= asking:
                    return
                left = ends - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
            else:
                return
        self.close(f"no request and no end within {seconds:g} seconds")

    def take(self) -> list[Asked]:
        """The first request of each agent that waits, in order of asking."""
        with self._changed:
            first: dict[str, Asked] = {}
            for asked in self._queue:
                first.setdefault(asked.agent, asked)
            self._queue = [asked for asked in self._queue if asked not in first.values()]
            return list(first.values())

    def answer(self, request: str, body: Mapping[str, Any]) -> None:
        """Tell the program, if it still waits."""
        with self._changed:
            asked = self._open.pop(request, None)
            self._answered[request] = body["model"]
        if asked is not None:
            asked.answer.set_result(body)

    def refuse(self, request: str, error: ServeError) -> None:
        """Tell the program that this request has no answer."""
        with self._changed:
            asked = self._open.pop(request, None)
        if asked is not None:
            asked.answer.set_exception(error)

    def rewards(self) -> list[Paid]:
        """Those given since the last call."""
        with self._changed:
            paid, self._paid = self._paid, []
            return paid

    def claim(self, turn: int) -> bool:
        """Whether the program is at this turn; from then on it is at the next."""
        with self._changed:
            if self._turn != turn:
                return False
            self._turn += 1
            return True

    def _check_open(self) -> None:
        if self.over:
            raise _gone()


def _gone() -> ServeError:
    return ServeError(410, "this episode has ended", code="episode_ended")


def _nothing() -> None:
    pass
