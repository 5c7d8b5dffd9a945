"""A person who plays an agent by answering on the play session's page."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from colearn.deploy.client.async_agent import Reply

PERSON = "person"
"""Value that selects a person instead of a server's URL: `--agent NAME=person`."""


@dataclass(frozen=True, slots=True)
class _Place:
    shown: str = "a person, in this page"


class Person:
    """A person who answers on the page. The class has the interface of `AsyncRemoteAgent`.

    There is no time limit: an episode waits for the person's answer.
    """

    endpoint = _Place()

    def __init__(self) -> None:
        self._asked: dict[int, asyncio.Future[str]] = {}
        """Answers that episodes wait for. The key is the number of the episode."""

    async def __aenter__(self) -> Person:
        return self

    async def __aexit__(self, *raised: object) -> None:
        for waiting in self._asked.values():
            waiting.cancel()

    def seated(self, episode: int) -> PersonTurns:
        """Return the person's conversation in one episode."""
        return PersonTurns(self, episode)

    def answer(self, episode: int, text: str) -> bool:
        """Deliver the person's answer; False if the episode is not waiting for one."""
        waiting = self._asked.pop(episode, None)
        if waiting is None or waiting.done():
            return False
        waiting.set_result(text)
        return True

    async def heard(self, episode: int) -> str:
        """Wait for the person's answer to the observation on the page."""
        waiting = asyncio.get_running_loop().create_future()
        self._asked[episode] = waiting
        answer: str = await waiting
        return answer


@dataclass(slots=True)
class PersonTurns:
    """A person's conversation in one episode; the page shows earlier turns."""

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
        """Wait for the person's answer."""
        started = time.perf_counter()
        text = await self.person.heard(self.episode)
        return Reply(text=text, tokens=None, seconds=time.perf_counter() - started, finish="end")

    async def close(self) -> None:
        """Do nothing, since there is nothing to release."""
