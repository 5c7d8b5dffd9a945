"""Player of an agent at an OpenAI-compatible server."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from colearn.contract import Ask, Player, Spoken, Table
from colearn.types import Action

from .agent import RemoteAgent
from .async_agent import AsyncConversation

Messages = tuple[dict[str, str], ...]
"""A player's history; every request sends all of it, so that a tree can fork."""


@dataclass(frozen=True, slots=True, eq=False)
class RemoteTable(Table):
    """Generation by a server, whose connections belong to the agent's own event loop."""

    agent: RemoteAgent

    async def say(self, ask: Ask, *, greedy: bool = False) -> list[Spoken]:
        """Errors: RemoteError if the server stays unreachable or rejects a request."""
        return await asyncio.wrap_future(self.agent.start(self._ask(ask, greedy)))

    async def _ask(self, ask: Ask, greedy: bool) -> list[Spoken]:
        async def say(seed: int) -> Spoken:
            talk: AsyncConversation = self.agent.stateless(ask.observation.system)
            if ask.memory is not None:
                talk.messages = list(ask.memory)
            reply = await talk.act(ask.observation.user_text, greedy=greedy, seed=seed)
            action = Action(reply.text, reply.token_ids or (), finish=reply.finish)
            return Spoken(action, tuple(talk.messages), reply.seconds)

        return list(await asyncio.gather(*(say(seed) for seed in ask.seeds)))


@dataclass(frozen=True, slots=True)
class Remote(Player):
    """A player whose answers come from a server and are never trained."""

    own_table: RemoteTable

    @property
    def table(self) -> RemoteTable:
        return self.own_table

    def close(self) -> None:
        """Closes the connections."""
        self.own_table.agent.close()
