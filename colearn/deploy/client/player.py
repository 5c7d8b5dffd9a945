"""Player whose actions come from an agent at an OpenAI-compatible server."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from colearn.contract import ActionRequest, Player, TokenAnswer
from colearn.contract.types import Action

from .agent import RemoteAgent
from .async_agent import AsyncConversation

Messages = tuple[dict[str, str], ...]
"""A history as messages; every request sends the whole history, so that a tree can fork."""


@dataclass(frozen=True, slots=True)
class Remote(Player):
    """A player whose answers come from a server. No model is trained on these answers. The
    connections belong to the event loop of the `RemoteAgent`."""

    agent: RemoteAgent

    async def act(self, request: ActionRequest) -> list[TokenAnswer]:
        """Errors: RemoteError if the server rejects a request or is still unreachable after all
        retries."""
        return await asyncio.wrap_future(self.agent.start(self._act(request)))

    def close(self) -> None:
        self.agent.close()

    async def _act(self, request: ActionRequest) -> list[TokenAnswer]:
        async def answer(seed: int) -> TokenAnswer:
            observed = request.observation
            talk: AsyncConversation = self.agent.stateless(observed.system, observed.turns)
            if request.history is not None:
                talk.messages = list(request.history)
            reply = await talk.act(observed.text, greedy=request.greedy, seed=seed)
            action = Action(reply.text, reply.token_ids or (), finish=reply.finish)
            return TokenAnswer(action, tuple(talk.messages), reply.seconds)

        return list(await asyncio.gather(*(answer(seed) for seed in request.seeds)))
