"""Sessions of this process: sessions of running episodes, and idle sessions, which later episodes
reuse."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from colearn.errors import TaskError

from ..live_games import LiveGames
from .session import PATIENCE, Closed, EnvironmentSession, ServerObservation

_RETRY = 0.05

Play = tuple[str, int, tuple[str, ...]]
"""An episode: arguments of the reset, seed and actions."""

_idle: dict[tuple[int, str], list[EnvironmentSession]] = {}
"""Idle sessions by process and URL: a forked process has copies of its parent's sessions, whose
connections belong to the parent."""


def begin(url: str, arguments: Mapping[str, Any]) -> tuple[EnvironmentSession, ServerObservation]:
    """Returns a session with a freshly reset environment: an idle session or a new session.

    If the server has no free session, the session of the oldest kept episode is reused. If the
    oldest episode continues later, it is replayed in another session.

    Errors: TaskError naming the server and the remedy.
    """
    end = time.monotonic() + PATIENCE
    while True:
        idle = _idle_at(url)
        reused = bool(idle)
        session = idle.pop() if idle else EnvironmentSession(url)
        try:
            return session, session.reset(arguments)
        except Closed:
            session.close()
        if reused or under_way(url).drop():
            continue
        if time.monotonic() > end:
            raise TaskError(
                f"task.url: {url} has no free session; start the server with a larger "
                "max_concurrent_envs, or lower train.episodes"
            )
        time.sleep(_RETRY)


def finish(session: EnvironmentSession) -> None:
    """Keep a session for another episode."""
    _idle_at(session.url).append(session)


def _idle_at(url: str) -> list[EnvironmentSession]:
    return _idle.setdefault((os.getpid(), url), [])


_live: dict[str, LiveGames[Play, EnvironmentSession]] = {}


def under_way(url: str) -> LiveGames[Play, EnvironmentSession]:
    """The sessions of running episodes at a server, by episode."""
    return _live.setdefault(url, LiveGames[Play, EnvironmentSession](end=finish))
