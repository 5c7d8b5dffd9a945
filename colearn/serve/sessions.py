"""Sessions: histories that the server keeps for clients, by the names that clients gave them."""

from __future__ import annotations

import itertools
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from colearn.generate.job import Job, Slot
from colearn.generate.token_history import TokenHistory
from colearn.types import Action
from colearn.wire.conversation import SentConversation
from colearn.wire.errors import ServeError

from .conversation import digest

_numbers = itertools.count(1)


@dataclass(slots=True, eq=False)
class ServedSession:
    """One private history. What was said is kept as ids and a fingerprint, never as text."""

    system: str | None
    """The system message that the client opened it with."""
    history: TokenHistory = field(default_factory=TokenHistory)
    said: bytes = b""
    """Fingerprint of all texts so far."""
    turns: int = 0
    key: int = field(default_factory=lambda: next(_numbers))
    mark: int | None = None
    busy: bool = False
    used: float = field(default_factory=time.monotonic)

    @property
    def last(self) -> Action | None:
        """The last action, as far as the next observation depends on it."""
        return Action("", (self.history.ids[-1],)) if self.turns else None

    def slot(self) -> Slot:
        return Slot(self.key, self.mark, next(_numbers))


class Sessions:
    """At most `most` sessions, the least recently used first; `forget` frees what the engine
    keeps of one."""

    def __init__(self, most: int, idle: float, forget: Callable[[int], None]) -> None:
        self.most, self.idle = most, idle
        self._forget = forget
        self._held: OrderedDict[str, ServedSession] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    def begin(self, name: str, conversation: SentConversation) -> ServedSession:
        """The session in which the conversation's last text is to be answered, now busy.

        Errors: ServeError: 404 earlier turns of an unknown session, 409 earlier turns that differ
        from its own, or a turn that is still being answered, 429 too many sessions.
        """
        session = self._held.get(name)
        if session is None:
            if not conversation.opens:
                raise ServeError(
                    404,
                    "no such session, and the messages hold earlier turns; open it with its first "
                    "user message, or leave out session_id",
                    param="session_id",
                    code="session_not_found",
                )
            self._make_room()
            session = ServedSession(conversation.system)
            session.said = digest(b"", conversation.system)
            self._held[name] = session
        elif session.busy:
            raise ServeError(
                409,
                "the session is answering another request; wait for it",
                param="session_id",
                code="session_busy",
            )
        elif not conversation.continues and _said(conversation) != session.said:
            raise ServeError(
                409,
                f"the earlier messages are not those of this session ({session.turns} turns); send "
                "only the new user message, or use another session_id",
                param="session_id",
                code="session_conflict",
            )
        session.busy = True
        session.used = time.monotonic()
        self._held.move_to_end(name)
        return session

    def commit(self, session: ServedSession, conversation: SentConversation, job: Job) -> None:
        """The turn was answered: it is part of the history from now on."""
        assert job.slot is not None
        (choice,) = job.choices
        session.history = job.history.act(choice.tokens)
        session.said = digest(session.said, conversation.said, choice.text)
        session.turns += 1
        session.mark = job.slot.mark

    def end(self, name: str, session: ServedSession) -> None:
        """The turn is over, answered or not; without any turn there is nothing to keep."""
        session.busy = False
        if not session.turns and self._held.get(name) is session:
            del self._held[name]

    def forget(self, name: str) -> None:
        """Errors: ServeError 404 for an unknown session, 409 for a busy one."""
        session = self._held.get(name)
        if session is None:
            raise ServeError(404, "no such session", code="session_not_found")
        if session.busy:
            raise ServeError(
                409, "the session is answering a request; wait for it", code="session_busy"
            )
        self._drop(name)

    def _make_room(self) -> None:
        if len(self._held) < self.most:
            return
        now = time.monotonic()
        for name, session in self._held.items():
            if not session.busy and now - session.used >= self.idle:
                self._drop(name)
                return
        raise ServeError(
            429,
            f"all {self.most} sessions are in use; delete some that are over "
            "(DELETE /v1/sessions/ID), or wait",
            code="session_limit_exceeded",
            headers={"retry-after": str(max(1, round(self.idle)))},
        )

    def _drop(self, name: str) -> None:
        self._forget(self._held.pop(name).key)


def _said(conversation: SentConversation) -> bytes:
    found = digest(b"", conversation.system)
    for said, answer in conversation.turns:
        found = digest(found, said, answer)
    return found
