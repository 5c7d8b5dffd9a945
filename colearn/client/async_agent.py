"""An agent behind an OpenAI-compatible endpoint, for programs with an event loop of their own."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from colearn.errors import ConfigError
from colearn.text import is_unicode
from colearn.types import Finish

from .endpoint import Endpoint, Refused, RemoteError

TOKEN = "COLEARN_TOKEN"
"""The environment variable that holds the key where none is given."""
SESSION_HEADER = "X-Session-Id"
"""Names the conversation to a load balancer, which sees headers and no bodies."""
LONGEST_ACTION = 2**20
"""Characters of an action that a task is made to read."""
_FORGOTTEN = ("session_conflict", "session_not_found")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One action as an endpoint gave it."""

    text: str
    tokens: int | None
    """Tokens sampled, the end token included; None where the endpoint does not count."""
    seconds: float
    """From the first attempt to the answer, waits between attempts included."""
    finish: Finish
    token_ids: tuple[int, ...] | None = None
    """Exactly as sampled; from colearn's own servers only."""


class AsyncRemoteAgent:
    """What `RemoteAgent` is, with coroutines; open it in the loop that uses it."""

    def __init__(
        self,
        url: str,
        *,
        name: str = "agent",
        api_key: str | None = None,
        model: str | None = None,
        system: str | None = None,
        sampling: Mapping[str, Any] | None = None,
        timeout: float = 60.0,
        retries: int = 2,
    ) -> None:
        key = os.environ.get(TOKEN) if api_key is None else api_key
        self.endpoint = Endpoint(url, name=name, api_key=key, timeout=timeout, retries=retries)
        self.model, self.system = model, system
        self.sampling = dict(sampling or {})
        self.sessions = False
        """The endpoint is colearn's and keeps conversations; known once it is open."""

    async def __aenter__(self) -> AsyncRemoteAgent:
        await self.endpoint.open()
        try:
            await self._choose_model()
        except BaseException:
            await self.endpoint.close()
            raise
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.endpoint.close()

    def conversation(self, *, session: bool = True, system: str | None = None) -> AsyncConversation:
        """A new private history; without a session where its turns may be said again otherwise.
        `system` takes the place of the agent's own system text."""
        return AsyncConversation(self, session=session, system=system)

    async def _choose_model(self) -> None:
        try:
            answer = await self.endpoint.request("GET", "/models")
        except Refused as refusal:
            if refusal.status not in (404, 405):
                raise
            if self.model is None:
                raise ConfigError(
                    f"{refusal}; name the model, as no list of them is here"
                ) from None
            return
        entries = answer.get("data")
        entries = entries if isinstance(entries, list) else []
        listed = {
            e["id"]: e for e in entries if isinstance(e, dict) and isinstance(e.get("id"), str)
        }
        if self.model is None:
            if len(listed) != 1:
                some = ", ".join(list(listed)[:8]) or "none"
                raise ConfigError(
                    self.endpoint.line(f"serves {len(listed)} models ({some}); name one of them")
                )
            (self.model,) = listed
        owner = listed.get(self.model, {}).get("owned_by")
        self.sessions = owner == "colearn"
        if "stop" not in self.sampling:
            return
        # in training stop strings stay in the text; servers cut those of a request off
        if self.sessions:
            own = (await self.endpoint.request("GET", "/agent")).get("sampling")
            if isinstance(own, dict) and own.get("stop") == self.sampling["stop"]:
                del self.sampling["stop"]
        elif owner == "vllm":
            self.sampling["include_stop_str_in_output"] = True


class AsyncConversation:
    """One private history at an endpoint: what was said so far, and what it cost.

    On colearn's servers it is a session. Every request brings the whole history, also there: a
    server that was restarted, or that answered a request whose answer was lost on the way, then
    says so instead of going on from another history. The conversation goes on without a session
    after that (`recovered`): earlier turns are then read from their text, and their tokens need
    not be the ones that were sampled.
    """

    def __init__(
        self, agent: AsyncRemoteAgent, *, session: bool = True, system: str | None = None
    ) -> None:
        self._agent = agent
        self._session = _new_id() if session and agent.sessions else None
        self._route = self._session or _new_id()
        self.messages: list[dict[str, str]] = []
        own = agent.system if system is None else system
        if own is not None:
            self.messages.append({"role": "system", "content": own})
        self._turns = 0
        self.retries = 0
        """Attempts after the first, over the conversation's turns."""
        self.recovered = 0
        """1 where the session was lost and the conversation went on without it."""

    async def act(
        self,
        observation: str,
        *,
        greedy: bool = False,
        seed: int | None = None,
        retried: Callable[[str], None] = lambda reason: None,
    ) -> Reply:
        """Show the agent `observation` and get its action; `retried` hears of each retry.

        Errors: AgentLost after all retries, Refused where the server says the request is wrong;
        the history is then as before.
        """
        messages = [*self.messages, {"role": "user", "content": observation}]
        settings = dict(self._agent.sampling)
        if greedy:
            settings["temperature"] = 0
        if seed is not None:
            settings["seed"] = seed

        def count(reason: str) -> None:
            self.retries += 1
            retried(reason)

        started = time.perf_counter()
        try:
            answer = await self._ask(messages, settings, count)
        except Refused as refusal:
            if self._session is None or refusal.code not in _FORGOTTEN:
                raise
            self.recovered += 1
            await self._forget()
            answer = await self._ask(messages, settings, count)
        reply = self._reply(answer, time.perf_counter() - started)
        self.messages = [*messages, {"role": "assistant", "content": reply.text}]
        self._turns += 1
        return reply

    async def close(self) -> None:
        """Let the server forget the session; one that does not answer forgets it by itself."""
        if self._turns:
            await self._forget()

    async def _forget(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            with contextlib.suppress(RemoteError):
                await self._agent.endpoint.notify("DELETE", f"/sessions/{session}")

    async def _ask(
        self,
        messages: list[dict[str, str]],
        settings: Mapping[str, Any],
        count: Callable[[str], None],
    ) -> Any:
        def body(attempt: int) -> dict[str, Any]:
            asked = {"model": self._agent.model, "messages": messages, **settings}
            if self._session is not None:
                # a first attempt may have opened the session, which a second would continue
                if attempt and not self._turns:
                    self._session = _new_id()
                asked["session_id"] = self._session
            return asked

        return await self._agent.endpoint.request(
            "POST", "/chat/completions", body, headers={SESSION_HEADER: self._route}, retried=count
        )

    def _reply(self, answer: Any, seconds: float) -> Reply:
        try:
            found = _Completion.model_validate(answer)
        except ValidationError:
            line = "the answer is no chat completion; is this an OpenAI-compatible server?"
            raise Refused(self._agent.endpoint.line(line), 200, None) from None
        choice, usage = found.choices[0], found.usage
        text = choice.message.content or ""
        if len(text) > LONGEST_ACTION or not is_unicode(text):
            line = f"the answer's text exceeds {LONGEST_ACTION} characters or is no Unicode"
            raise Refused(self._agent.endpoint.line(line), 200, None)
        own = choice.colearn
        ids = None if own is None else own.token_ids
        finish = None if own is None else own.finish
        if finish is None:
            ended: Finish = "stop" if isinstance(choice.stop_reason, str) else "end"
            finish = "length" if choice.finish_reason == "length" else ended
        return Reply(
            text=text,
            tokens=len(ids) if ids is not None else usage.completion_tokens if usage else None,
            seconds=seconds,
            finish=finish,
            token_ids=ids,
        )


class _Message(BaseModel):
    content: str | None = None


class _Own(BaseModel):
    token_ids: tuple[int, ...]
    finish: Finish | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str
    stop_reason: str | int | None = None
    """vLLM's: the stop string, where one ended the answer."""
    colearn: _Own | None = None


class _Usage(BaseModel):
    completion_tokens: int


class _Completion(BaseModel):
    """What is read of a chat completion."""

    choices: list[_Choice] = Field(min_length=1)
    usage: _Usage | None = None


def _new_id() -> str:
    return secrets.token_hex(12)
