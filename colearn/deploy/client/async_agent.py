"""Asynchronous client for an agent at an OpenAI-compatible endpoint."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from colearn.contract.types import Finish
from colearn.errors import ConfigError, printable

from .completion import Completion
from .endpoint import Endpoint, Refused, RemoteError

TOKEN = "COLEARN_TOKEN"
"""Environment variable with the default key."""
SESSION_HEADER = "X-Session-Id"
"""Header that identifies a conversation for load balancers, which read no request bodies."""
Turns = Sequence[tuple[str, str]]
_FORGOTTEN = ("session_conflict", "session_not_found")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One action of an endpoint."""

    text: str
    tokens: int | None
    """Number of sampled tokens with the end token; None if the endpoint does not report it."""
    seconds: float
    """Seconds from the first attempt to the answer, including waits between attempts."""
    finish: Finish
    token_ids: tuple[int, ...] | None = None
    """The sampled token ids; None unless the server reports them (`return_token_ids`)."""


class AsyncRemoteAgent:
    """Variant of `RemoteAgent` whose methods are coroutines; must be opened in the event loop in
    which it is used."""

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
        """True for a colearn server, which keeps sessions; set when the agent is opened."""
        self.restores_stops = False
        """Whether answers lack the stop string that ended them, and name it."""

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

    def conversation(
        self, *, session: bool = True, system: str | None = None, turns: Turns = ()
    ) -> AsyncConversation:
        """Opens a conversation with a new private history.

        session: whether to use a server session; must be False for histories that fork. `system`
        replaces the agent's system text. turns: (user, assistant) texts with which the history
        begins; no server session begins with them.
        """
        return AsyncConversation(self, session=session and not turns, system=system, turns=turns)

    async def _choose_model(self) -> None:
        try:
            answer = await self.endpoint.request("GET", "/models")
        except Refused as refusal:
            if refusal.status not in (404, 405):
                raise
            if self.model is None:
                raise ConfigError(
                    f"{refusal}; name the model, since the endpoint lists none"
                ) from None
            return
        entries = answer.get("data")
        entries = entries if isinstance(entries, list) else []
        listed = {
            e["id"]: e for e in entries if isinstance(e, dict) and isinstance(e.get("id"), str)
        }
        if self.model is None:
            if len(listed) != 1:
                names = printable(", ".join(name[:80] for name in [*listed][:8])) or "none"
                raise ConfigError(
                    self.endpoint.line(f"serves {len(listed)} models ({names}); name one of them")
                )
            (self.model,) = listed
        owner = listed.get(self.model, {}).get("owned_by")
        self.sessions = owner == "colearn"
        if self.sessions:
            self.sampling.setdefault("return_token_ids", True)
        if owner == "vllm":  # it drops tags, such as <answer>, that a tokenizer has as special
            self.sampling.setdefault("skip_special_tokens", False)
        # in training, stop strings stay in the text; servers remove a request's
        if self.sessions and "stop" in self.sampling:
            sampling = (await self.endpoint.request("GET", "/agent")).get("sampling")
            if isinstance(sampling, dict) and sampling.get("stop") == self.sampling["stop"]:
                del self.sampling["stop"]
        elif owner == "vllm":  # if asked for stop strings, it would also give the end token
            self.restores_stops = not self.sampling.get("include_stop_str_in_output")


class AsyncConversation:
    """One private history at an endpoint, with its retries.

    On a colearn server, the conversation is a session. Every request nevertheless sends the whole
    history. If the server was restarted, or the server's last answer was lost, the server reports
    that its session differs from this history. The conversation then continues without a session
    (`recovered`). Without a session, the server tokenises earlier turns from their text, and the
    resulting tokens may differ from the sampled tokens.
    """

    def __init__(
        self,
        agent: AsyncRemoteAgent,
        *,
        session: bool = True,
        system: str | None = None,
        turns: Turns = (),
    ) -> None:
        self._agent = agent
        self._session = _new_id() if session and agent.sessions else None
        self._route = self._session or _new_id()
        self.messages: list[dict[str, str]] = []
        text = agent.system if system is None else system
        if text is not None:
            self.messages.append({"role": "system", "content": text})
        for user, assistant in turns:
            self.messages.append({"role": "user", "content": user})
            self.messages.append({"role": "assistant", "content": assistant})
        self._turns = 0
        self.retries = 0
        """Number of retries so far, over all turns of the conversation."""
        self.recovered = 0
        """1 if the session was lost and the conversation continued without a session, else 0."""

    async def act(
        self,
        observation: str,
        *,
        greedy: bool = False,
        seed: int | None = None,
        retried: Callable[[str], None] = lambda reason: None,
    ) -> Reply:
        """Sends `observation` and returns the action; `retried` is called at each retry.

        Errors: AgentLost after all retries; Refused if the server rejects the request, or if the
        answer is no action (a refusal, a filtered text, a tool call). In both cases, the history is
        unchanged.
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
        seconds = time.perf_counter() - started
        text = answer.text + (answer.stop or "" if self._agent.restores_stops else "")
        self.messages = [*messages, {"role": "assistant", "content": text}]
        self._turns += 1
        return Reply(
            text=text,
            tokens=answer.tokens,
            seconds=seconds,
            finish=answer.finish,
            token_ids=answer.token_ids,
        )

    async def close(self) -> None:
        """Ask the server to delete the session. If this request does not reach the server, a later
        session may replace this session."""
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
    ) -> Completion:
        def body(attempt: int) -> dict[str, Any]:
            fields = {"model": self._agent.model, "messages": messages, **settings}
            if self._session is not None:
                # a first attempt may have opened the session, which a second would continue
                if attempt and not self._turns:
                    self._session = _new_id()
                fields["session_id"] = self._session
            return fields

        return await self._agent.endpoint.complete(
            body, headers={SESSION_HEADER: self._route}, retried=count
        )


def _new_id() -> str:
    return secrets.token_hex(12)
