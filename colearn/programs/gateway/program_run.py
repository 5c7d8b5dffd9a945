"""Live episodes: pass the requests of a program to the rollout, and pass the answers back to the
program."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from colearn.deploy.client.protocol.errors import ServeError
from colearn.deploy.client.protocol.schema import ChatRequest
from colearn.errors import printable
from colearn.text.masking import masked
from colearn.text.notes import note_once

_LONGEST_FAILURE = 300
MOST_WAITING = 64
"""Maximum number of requests of one episode that may wait for an answer."""

_UNREAD = (
    "gateway: a program left before its answer was there, which is trained and paid although the "
    "program has not read it; raise the time limit of its client"
)


@dataclass(slots=True, eq=False)
class PendingRequest:
    """A request that waits for its answer."""

    agent: str
    body: ChatRequest
    name: str = field(default_factory=lambda: f"chatcmpl-{secrets.token_hex(12)}")
    answer: Future[Mapping[str, Any]] = field(default_factory=Future)

    def __post_init__(self) -> None:
        # a client that disconnects while the answer is being set cannot cancel a running future
        self.answer.set_running_or_notify_cancel()


@dataclass(frozen=True, slots=True)
class Paid:
    """A reward that the program posted. At most one of the fields `agent` and `request` is set."""

    value: float
    agent: str | None = None
    request: str | None = None


class ProgramRun:
    """One run of a program. Thread-safe.

    `name` contains the secret that authorises requests to the episode.
    """

    def __init__(self, number: int, agents: Sequence[str], item: Any) -> None:
        self.name = f"{number}-{secrets.token_urlsafe(18)}"
        self.agents, self.item = tuple(agents), item
        self.failure: str | None = None
        self.result: Any = None
        self.over = False
        self.ended = False
        """True if the program ended without being stopped."""
        self.queued = False
        """True until a worker takes the episode or a program uses the episode's URLs."""
        self.refused: str | None = None
        """Text about the last request that was refused. A program may catch the error, or repeat
        the request."""
        self.stop: Callable[[], None] = _nothing
        """Function that stops the program if the program still runs."""
        self._turn = 0
        self._changed = threading.Condition()
        self._queue: list[PendingRequest] = []
        self._open: dict[str, PendingRequest] = {}
        self._paid: list[Paid] = []
        self._answered: dict[str, str] = {}
        """The agent that answered each request. The key is the request's id."""

    def ask(self, agent: str, body: ChatRequest) -> PendingRequest:
        """Queues a request.

        Errors: ServeError 404 for an unknown agent, 410 after the end, 429 if too many requests
        wait.
        """
        if agent not in self.agents:
            raise ServeError(404, f"no such agent; this program has {', '.join(self.agents)}")
        pending = PendingRequest(agent, body)
        with self._changed:
            self._check_open()
            if len(self._open) >= MOST_WAITING:
                raise ServeError(429, f"more than {MOST_WAITING} requests of this episode wait")
            self.queued = False
            self._queue.append(pending)
            self._open[pending.name] = pending
            self._changed.notify_all()
        return pending

    def withdraw(self, pending: PendingRequest) -> None:
        """Drops a request whose client has disconnected."""
        with self._changed:
            self._open.pop(pending.name, None)
            if pending in self._queue:
                self._queue.remove(pending)

    def pay(self, paid: Paid) -> None:
        """Records a reward.

        Errors: ServeError 404 for an unknown agent or request, 409 for an agent without an answer,
        410 after the end.
        """
        with self._changed:
            self._check_open()
            if paid.agent is not None and paid.agent not in self.agents:
                raise ServeError(404, f"no such agent; this program has {', '.join(self.agents)}")
            if paid.agent is not None and paid.agent not in self._answered.values():
                raise ServeError(409, "this agent has no answer yet; post its reward after one")
            if paid.request is not None and paid.request not in self._answered:
                raise ServeError(404, "no such call in this episode; give a completion's id")
            self._paid.append(paid)

    def end(self, *, result: Any = None, failure: str | None = None, ended: bool = True) -> None:
        """Ends the episode; waiting and later requests are answered with status 410."""
        with self._changed:
            if self.over:
                return
            self.over, self.result = True, result
            if failure is not None:
                self.fail(failure)
            self.ended = ended
            waiting, self._queue, self._open = list(self._open.values()), [], {}
            self._changed.notify_all()
        for pending in waiting:
            pending.answer.set_exception(_gone())

    def fail(self, failure: str) -> None:
        """Records why the episode failed. The text may come from a program and is shown in
        terminals, logs and reports, so it is stored as one line without control characters and
        without secrets."""
        self.failure = masked(printable(failure))[:_LONGEST_FAILURE] or "nothing said"

    def close(self, failure: str | None = None) -> None:
        """Ends the episode and stops its program."""
        self.end(failure=failure, ended=False)
        self.stop()

    def wait(self, seconds: float, agents: frozenset[str] = frozenset()) -> None:
        """Waits until the program has requested an answer or has ended. If `agents` are given,
        waits for a request to each of these agents; after `seconds`, a request to any agent
        suffices.

        After `seconds` without a request to any agent, the episode is closed as failed.
        """
        ends = time.monotonic() + seconds
        with self._changed:
            while not self.over:
                asking = {pending.agent for pending in self._queue}
                if asking and agents <= asking:
                    return
                remaining = ends - time.monotonic()
                if remaining <= 0 and asking:
                    return
                if remaining <= 0:
                    break
                self._changed.wait(remaining)
            else:
                return
        failure = f"no request and no end within {seconds:g} seconds"
        if self.refused is not None:
            failure += f"; {self.refused}"
        if self.queued:
            failure = (
                f"no worker took it within {seconds:g} seconds; play episodes concurrently, or "
                "raise task.workers"
            )
        self.close(failure)

    def take(self) -> list[PendingRequest]:
        """Removes the first waiting request of each agent, and returns these requests in order of
        arrival."""
        with self._changed:
            first: dict[str, PendingRequest] = {}
            for pending in self._queue:
                first.setdefault(pending.agent, pending)
            self._queue = [pending for pending in self._queue if pending not in first.values()]
            return list(first.values())

    def answer(self, request: str, body: Mapping[str, Any]) -> None:
        """Answers a request if its client still waits; otherwise prints a note."""
        with self._changed:
            pending = self._open.pop(request, None)
            self._answered[request] = body["model"]
        if pending is not None:
            pending.answer.set_result(body)
        elif not self.over:
            note_once(_UNREAD)

    def refuse(self, request: str, error: ServeError) -> None:
        """Answers a request with an error."""
        with self._changed:
            pending = self._open.pop(request, None)
        if pending is not None:
            pending.answer.set_exception(error)

    def rewards(self) -> list[Paid]:
        """Returns the rewards posted since the last call."""
        with self._changed:
            paid, self._paid = self._paid, []
            return paid

    def claim(self, turn: int) -> bool:
        """Returns whether the program is at this turn; if so, advances the program to the next
        turn."""
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
