"""A seat that a person takes, in the page of the play."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from colearn.client.async_agent import Reply

PERSON = "person"
"""In place of a server's URL: `--agent NAME=person`."""


@dataclass(frozen=True, slots=True)
class _Place:
    shown: str = "a person, in this page"


class Person:
    """What `AsyncRemoteAgent` is to a play, with somebody at the page instead of a server.

    Nobody is hurried: an episode waits for its answer.
    """

    endpoint = _Place()

    def __init__(self) -> None:
        self._asked: dict[int, asyncio.Future[str]] = {}
        """By episode, what is waited for."""

    async def __aenter__(self) -> Person:
        return self

    async def __aexit__(self, *raised: object) -> None:
        for waiting in self._asked.values():
            waiting.cancel()

    def seated(self, episode: int) -> PersonTurns:
        """The person in one episode."""
        return PersonTurns(self, episode)

    def answer(self, episode: int, text: str) -> bool:
        """What the person said; False where the episode is not waiting for it."""
        waiting = self._asked.pop(episode, None)
        if waiting is None or waiting.done():
            return False
        waiting.set_result(text)
        return True

    async def heard(self, episode: int) -> str:
        """Wait for the answer to what the page shows."""
        waiting = asyncio.get_running_loop().create_future()
        self._asked[episode] = waiting
        answer: str = await waiting
        return answer


@dataclass(slots=True)
class PersonTurns:
    """An episode's conversation with the person; the page shows what was said before."""

    person: Person
    episode: int
    retries: int = 0
    recovered: int = 0

    async def act(
        self,
        observation: str,
        *,
        greedy: bool = False,
        seed: int | None = None,
        retried: Callable[[str], None] = lambda reason: None,
    ) -> Reply:
        """The person's answer."""
        started = time.perf_counter()
        text = await self.person.heard(self.episode)
        return Reply(text=text, tokens=None, seconds=time.perf_counter() - started, finish="end")

    async def close(self) -> None:
        """Nothing is kept."""
