"""Idle sessions with an OpenEnv server are reused in the process that opened them."""

from __future__ import annotations

import multiprocessing
from typing import Any

import pytest

from colearn.tasks.openenv import sessions
from colearn.tasks.openenv.session import ServerObservation


class Opened:
    """A session that counts the sessions opened so far."""

    count = 0

    def __init__(self, url: str) -> None:
        self.url = url
        Opened.count += 1
        self.number = Opened.count

    def reset(self, arguments: dict[str, Any]) -> ServerObservation:
        return ServerObservation({}, 0.0, False)


def begun() -> int:
    """The number of the session of a new episode, which then ends."""
    session, _ = sessions.begin("http://nowhere", {})
    sessions.finish(session)
    return session.number


def test_a_forked_process_opens_sessions_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "EnvironmentSession", Opened)
    first = begun()
    assert begun() == first
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(begun) == first + 1
    assert begun() == first
