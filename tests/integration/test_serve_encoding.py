"""The queue in which clients' texts wait to be turned into ids."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from exported import export_tiny
from starlette.requests import Request

from colearn.deploy.client.protocol.connected import while_connected
from colearn.deploy.client.protocol.errors import ServeError
from colearn.deploy.client.protocol.limits import ServerLimits
from colearn.deploy.client.protocol.schema import ChatRequest, parse
from colearn.deploy.serve.agent import ServedAgent
from colearn.deploy.serve.app import build_app
from colearn.deploy.serve.requests import token_history
from colearn.deploy.serve.service import Service

Message = dict[str, Any]


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> ServedAgent:
    return ServedAgent(export_tiny(tmp_path_factory.mktemp("encoding") / "ada"), device="cpu")


class Slow:
    """A service whose encoding thread stands still until it is let go; `read` are the texts that
    it has turned into ids."""

    def __init__(self, agent: ServedAgent, monkeypatch: pytest.MonkeyPatch) -> None:
        self.agent, self.monkeypatch = agent, monkeypatch
        self.go, self.entered = threading.Event(), threading.Event()
        self.read: list[str] = []

    def run(self, scene: Callable[[Service], Coroutine[Any, Any, None]], **limits: Any) -> None:
        async def play() -> None:
            service = Service(self.agent, ServerLimits(**limits), lambda: None)

            def slowly(agent: Any, conversation: Any, session: Any) -> Any:
                self.entered.set()
                self.go.wait(600)
                self.read.append(conversation.said)
                return token_history(agent, conversation, session)

            self.monkeypatch.setattr("colearn.deploy.serve.service.token_history", slowly)
            service.start()
            try:
                await scene(service)
            finally:
                self.go.set()
                service.close()

        asyncio.run(play())


@pytest.fixture
def slow(agent: ServedAgent, monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    yield Slow(agent, monkeypatch)


def body(text: str) -> bytes:
    return json.dumps({"messages": [{"role": "user", "content": text}], "max_tokens": 2}).encode()


def asked(text: str) -> ChatRequest:
    return parse(body(text))


def begin(service: Service, text: str) -> asyncio.Task[Any]:
    return asyncio.create_task(service.begin(asked(text), lambda event: None))


def test_texts_that_wait_to_be_encoded_count_as_waiting(slow: Slow) -> None:
    async def scene(service: Service) -> None:
        waiting = [begin(service, f"text {number}") for number in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(ServeError) as refused:
            await service.begin(asked("one more"), lambda event: None)
        assert (refused.value.status, refused.value.code) == (429, "queue_full")
        assert b"colearn_waiting_requests 3.0" in service.metrics.text()
        slow.go.set()
        await asyncio.gather(*waiting)
        while service.encoding:
            await asyncio.sleep(0.01)
        await service.begin(asked("one more"), lambda event: None)

    slow.run(scene, max_queue=3)


def test_a_text_that_cannot_fit_is_refused_unread(slow: Slow) -> None:
    async def scene(service: Service) -> None:
        most = service.agent.context * service.agent.longest_token
        with pytest.raises(ServeError) as refused:
            await service.begin(asked("a" * (most + 1)), lambda event: None)
        assert refused.value.code == "context_length_exceeded"
        assert service.encoding == 0 and not slow.read

    slow.run(scene)


def test_what_a_client_that_has_gone_said_is_not_read(slow: Slow) -> None:
    async def scene(service: Service) -> None:
        app = build_app(service)
        first = asyncio.create_task(ask(app, "first", leaves=False))
        await asyncio.to_thread(slow.entered.wait, 60)
        status = await ask(app, "gone", leaves=True)
        slow.go.set()
        assert (status, await first) == (499, 200)

    slow.run(scene)
    assert slow.read == ["first"]


def test_work_for_a_client_that_has_gone_has_ended_when_that_is_said() -> None:
    ended = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("work")

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def play() -> None:
        with pytest.raises(ServeError) as gone:
            await while_connected(Request({"type": "http"}, receive), work())
        assert (gone.value.status, ended) == (499, ["work"])

    asyncio.run(play())


async def ask(app: Any, text: str, *, leaves: bool) -> int:
    """The status of a request whose client goes, or waits, once it is sent."""
    sent: list[Message] = []
    messages = [{"type": "http.request", "body": body(text), "more_body": False}]

    async def receive() -> Message:
        if messages:
            return messages.pop()
        if not leaves:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/chat/completions",
        "headers": [(b"content-type", b"application/json")],
        "query_string": b"",
    }
    await app(scope, receive, send)
    return int(sent[0]["status"])
