"""Stores sessions. A session is a private history that the server stores under a name chosen by the
client."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from dataclasses import dataclass, field

from colearn.contract import TokenHistory
from colearn.contract.types import Action
from colearn.deploy.client.protocol.conversation import SentConversation
from colearn.deploy.client.protocol.errors import ServeError


@dataclass(slots=True, eq=False)
class ServedSession:
    """One private history, stored as token ids and a fingerprint, never as text. The engine keeps
    the KV cache of the history as long as the history exists, if memory allows."""

    system: str | None
    """The system message of the session's first request."""
    history: TokenHistory = field(default_factory=TokenHistory)
    last: Action | None = None
    """The last action, as `ChatFormat.remembered` reduces it."""
    said: bytes = b""
    """Fingerprint of all texts in the session so far."""
    turns: int = 0
    busy: bool = False
    used: float = field(default_factory=time.monotonic)


class Sessions:
    """Stores up to `most` sessions, ordered from least to most recently used."""

    def __init__(self, most: int, idle: float) -> None:
        self.most, self.idle = most, idle
        self._held: OrderedDict[str, ServedSession] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    def begin(self, name: str, conversation: SentConversation) -> ServedSession:
        """Returns the session of a conversation and marks it busy.

        Errors: ServeError 404 for earlier turns of an unknown session; 409 if earlier turns differ
        from those of the session, or if the session is busy; 429 for too many sessions.
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
                f"the earlier messages differ from this session's ({session.turns} turns); send "
                "only the new user message, or use another session_id",
                param="session_id",
                code="session_conflict",
            )
        session.busy = True
        session.used = time.monotonic()
        self._held.move_to_end(name)
        return session

    def commit(
        self,
        session: ServedSession,
        conversation: SentConversation,
        history: TokenHistory,
        last: Action,
        text: str,
    ) -> None:
        """Adds an answered turn; `history` ends with the answer, which `last` is, reduced. `text`
        is the text that the client received."""
        session.history, session.last = history, last
        session.said = digest(session.said, conversation.said, text)
        session.turns += 1

    def end(self, name: str, session: ServedSession) -> None:
        """Ends a turn, whether answered or not; removes the session if it has no turns."""
        session.busy = False
        if not session.turns and self._held.get(name) is session:
            del self._held[name]

    def forget(self, name: str) -> None:
        """Removes a session.

        Errors: ServeError 404 for an unknown session, 409 for a busy one.
        """
        session = self._held.get(name)
        if session is None:
            raise ServeError(404, "no such session", code="session_not_found")
        if session.busy:
            raise ServeError(
                409, "the session is answering a request; wait for it", code="session_busy"
            )
        del self._held[name]

    def _make_room(self) -> None:
        if len(self._held) < self.most:
            return
        seconds = time.monotonic()
        for name, session in self._held.items():
            if not session.busy and seconds - session.used >= self.idle:
                del self._held[name]
                return
        raise ServeError(
            429,
            f"all {self.most} sessions are in use; delete finished ones "
            "(DELETE /v1/sessions/ID), or wait",
            code="session_limit_exceeded",
            headers={"retry-after": str(max(1, round(self.idle)))},
        )


def _said(conversation: SentConversation) -> bytes:
    fingerprint = digest(b"", conversation.system)
    for user, answer in conversation.turns:
        fingerprint = digest(fingerprint, user, answer)
    return fingerprint


def digest(before: bytes, *texts: str | None) -> bytes:
    """Returns the fingerprint of a history that continues `before` with `texts`."""
    fingerprint = hashlib.blake2b(before, digest_size=16)
    for text in texts:
        part = b"" if text is None else text.encode("utf-8", "surrogatepass")
        fingerprint.update(f"{text is None}:{len(part)}:".encode() + part)
    return fingerprint.digest()
