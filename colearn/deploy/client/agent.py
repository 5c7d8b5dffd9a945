"""`RemoteAgent`: synchronous client for an agent at an OpenAI-compatible endpoint."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from .async_agent import AsyncConversation, AsyncRemoteAgent, Reply, Turns

Result = TypeVar("Result")


class RemoteAgent:
    """Client of one agent at `url` (with or without /v1), which is a colearn server or any other
    OpenAI-compatible server.

    A colearn server keeps each conversation as a session and computes only new tokens; any other
    endpoint processes the whole conversation at every turn. `model` is required if the endpoint
    serves several models. If `system` or `sampling` (fields of a chat completion: `max_tokens`,
    `temperature`, ...) is given, every request includes it; otherwise the server's settings apply.
    If `api_key` is None, the environment variable COLEARN_TOKEN is used. `timeout` limits each
    attempt, in seconds; `retries` is the maximum number of attempts after the first attempt; a lost
    connection, a status 408, 429 or 5xx, or an answer that the server broke off leads to another
    attempt.

        with RemoteAgent("http://127.0.0.1:8000") as agent:
            talk = agent.conversation()
            print(talk.act("grid 3 3 ...", greedy=True).text)

    A `RemoteAgent` can be used from several threads, and inside a running event loop (a notebook).
    Errors: ConfigError for invalid arguments; Refused and AgentLost (both RemoteError) as in
    `Conversation.act`.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        model: str | None = None,
        system: str | None = None,
        sampling: Mapping[str, Any] | None = None,
        timeout: float = 60.0,
        retries: int = 2,
    ) -> None:
        self._agent = AsyncRemoteAgent(
            url,
            api_key=api_key,
            model=model,
            system=system,
            sampling=sampling,
            timeout=timeout,
            retries=retries,
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        try:
            self.run(self._agent.__aenter__())
        except BaseException:
            self._stop()
            raise

    @property
    def model(self) -> str | None:
        """The model's name at the endpoint; on a colearn server, the agent's name."""
        return self._agent.model

    @property
    def sessions(self) -> bool:
        """Whether the endpoint is a colearn server, which stores conversations as sessions."""
        return self._agent.sessions

    def conversation(self) -> Conversation:
        """Opens a conversation with a new private history."""
        return Conversation(self, self._agent.conversation())

    def stateless(self, system: str | None = None, turns: Turns = ()) -> AsyncConversation:
        """Opens a conversation without a server session, for use in this agent's event loop
        (`run`).

        `system` replaces the system text of this `RemoteAgent`; the history begins with `turns`.
        """
        return self._agent.conversation(session=False, system=system, turns=turns)

    def close(self) -> None:
        """Closes the connections; the agent and its conversations cannot be used any more."""
        if self._thread.is_alive():
            self.run(self._agent.__aexit__())
            self._stop()

    def __enter__(self) -> RemoteAgent:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Runs a coroutine in this agent's event loop and returns the result."""
        return self.start(work).result()

    def start(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Starts a coroutine in this agent's event loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Conversation:
    """One private history at an endpoint."""

    def __init__(self, agent: RemoteAgent, inner: AsyncConversation) -> None:
        self._agent, self._inner = agent, inner

    @property
    def messages(self) -> list[dict[str, str]]:
        """The history, as messages of a chat completion."""
        return self._inner.messages

    @property
    def retries(self) -> int:
        """Number of retries so far, over all turns."""
        return self._inner.retries

    @property
    def recovered(self) -> int:
        """1 if the server lost the session and the conversation continued without one, else 0."""
        return self._inner.recovered

    def act(self, observation: str, *, greedy: bool = False, seed: int | None = None) -> Reply:
        """Sends `observation` to the agent and returns its action.

        Errors: AgentLost after all retries; Refused if the server rejects the request, or if the
        answer is no action (a refusal, a filtered text, a tool call). In both cases, the history is
        unchanged.
        """
        return self._agent.run(self._inner.act(observation, greedy=greedy, seed=seed))

    def close(self) -> None:
        """Deletes the session at the server. Without this call, the server keeps the session until
        a new session replaces it."""
        self._agent.run(self._inner.close())
