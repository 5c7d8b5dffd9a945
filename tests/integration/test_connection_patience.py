"""How long a connection waits for its client: only while the client owes something. The clock is
the test's, so that no second passes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from uvicorn.server import ServerState

from colearn.deploy.client.protocol.connection import protocol

PATIENCE = 7.25
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n"
PART = b"x" * 65536


class Timer:
    """One wait for a client, until it is cancelled or over."""

    def __init__(self, clock: Clock, callback: Callable[[], None]) -> None:
        self.clock, self.callback = clock, callback

    def cancel(self) -> None:
        self.clock.running.discard(self)


class Clock:
    """An event loop whose waits of `PATIENCE` seconds are over when the test says so."""

    def __init__(self) -> None:
        self.running: set[Timer] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio.get_running_loop(), name)

    def call_later(self, delay: float, callback: Callable[[], None], *arguments: Any) -> Any:
        if delay != PATIENCE:
            return asyncio.get_running_loop().call_later(delay, callback, *arguments)
        timer = Timer(self, callback)
        self.running.add(timer)
        return timer

    async def until_waiting(self, waits: bool = True) -> None:
        while bool(self.running) != waits:
            await asyncio.sleep(0.001)

    def ring(self) -> None:
        for timer in [*self.running]:
            timer.callback()


Scene = Callable[[asyncio.StreamReader, asyncio.StreamWriter, Clock], Awaitable[Any]]


def served(app: Any, scene: Scene) -> Any:
    """What a scene on one connection returns."""

    async def play() -> Any:
        clock = Clock()

        class Timed(protocol(PATIENCE)):  # type: ignore[misc]
            def __init__(self, *arguments: Any, **settings: Any) -> None:
                super().__init__(*arguments, **settings)
                self.loop = clock

        config = uvicorn.Config(app, ws="none", lifespan="off", log_config=None)
        config.load()
        state = ServerState()
        server = await asyncio.get_running_loop().create_server(
            lambda: Timed(config=config, server_state=state, app_state={}), "127.0.0.1", 0
        )
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        try:
            return await asyncio.wait_for(scene(reader, writer, clock), 60)
        finally:
            writer.close()
            server.close()

    return asyncio.run(play())


async def fine(scope: Any, receive: Any, send: Any) -> None:
    await PlainTextResponse("fine")(scope, receive, send)


async def answered(reader: asyncio.StreamReader) -> bytes:
    """One whole answer of `fine`."""
    return await reader.readuntil(b"fine")


async def is_cut_off(reader: asyncio.StreamReader) -> bool:
    """Whether the server has ended the connection."""
    try:
        while await reader.read(len(PART)):
            pass
    except ConnectionError:
        pass
    return True


def test_a_connection_between_requests_is_kept() -> None:
    async def scene(reader: Any, writer: Any, clock: Clock) -> bytes:
        writer.write(GET)
        await answered(reader)
        assert not clock.running
        writer.write(GET)
        return await answered(reader)

    assert b" 200 " in served(fine, scene)


@pytest.mark.parametrize(
    ("first", "then"),
    [(b"", b""), (b"", GET[:20]), (GET, GET[:20]), (GET + GET[:20], b""), (POST + b"ab", b"")],
    ids=[
        "nothing",
        "half of it",
        "half of a second one",
        "half behind a whole one",
        "an unread body",
    ],
)
def test_the_rest_of_a_request_is_waited_for_in_vain(first: bytes, then: bytes) -> None:
    async def scene(reader: Any, writer: Any, clock: Clock) -> bool:
        if first:
            writer.write(first)
            await answered(reader)
        writer.write(then)
        await clock.until_waiting()
        clock.ring()
        return await is_cut_off(reader)

    assert served(fine, scene)


@pytest.mark.parametrize("sent", [(GET, b""), (POST, b"abcd")], ids=["an answer", "a body"])
def test_an_accepted_request_and_its_answer_have_their_own_time(sent: tuple[bytes, bytes]) -> None:
    begun, go = asyncio.Event(), asyncio.Event()
    head, body = sent

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        begun.set()
        assert await Request(scope, receive).body() == body
        await go.wait()
        await fine(scope, receive, send)

    async def scene(reader: Any, writer: Any, clock: Clock) -> bytes:
        writer.write(head)
        await begun.wait()
        assert not clock.running
        writer.write(body)
        go.set()
        return await answered(reader)

    assert b" 200 " in served(slow, scene)


def test_a_client_may_pause_and_is_cut_off_once_it_reads_no_more() -> None:
    async def endless(scope: Any, receive: Any, send: Any) -> None:
        async def content() -> Any:
            while True:
                yield PART
                await asyncio.sleep(0)  # uvicorn takes writes to a closed connection at once

        await StreamingResponse(content())(scope, receive, send)

    async def scene(reader: Any, writer: Any, clock: Clock) -> bool:
        writer.write(GET)
        for _ in range(2):
            await clock.until_waiting()
            while clock.running:
                await reader.readexactly(len(PART))
        await clock.until_waiting()
        clock.ring()
        return await is_cut_off(reader)

    assert served(endless, scene)


def test_a_connection_that_has_ended_is_waited_for_no_more() -> None:
    async def scene(reader: Any, writer: Any, clock: Clock) -> None:
        writer.write(GET[:20])
        await clock.until_waiting()
        writer.close()
        await clock.until_waiting(False)

    served(fine, scene)
