"""How long a connection waits for its client: only while the client owes something."""

from __future__ import annotations

import asyncio
import gc
import socket
import time
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse

from colearn.deploy.client.protocol.connection import PatientProtocol, protocol

PATIENCE = 1.5
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
PART = b"x" * 65536
Connected = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[Any]]


async def fine(scope: Any, receive: Any, send: Any) -> None:
    await PlainTextResponse("fine")(scope, receive, send)


def served(app: Any, scene: Connected, http: Any = None) -> Any:
    """What a scene on one connection returns."""

    async def play() -> Any:
        listening = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(
            app,
            http=http or protocol(PATIENCE, 8),
            ws="none",
            lifespan="off",
            log_config=None,
            timeout_keep_alive=60,
        )
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve([listening]))
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        try:
            return await asyncio.wait_for(scene(reader, writer), 600)
        finally:
            writer.close()
            server.should_exit = True
            await serving

    return asyncio.run(play())


async def answered(reader: asyncio.StreamReader) -> bytes:
    """One whole answer of `fine`."""
    return await reader.readuntil(b"fine")


async def is_cut_off(reader: asyncio.StreamReader, began: float) -> bool:
    """Whether the server ends the connection, and not before its patience since `began` is over."""
    try:
        await asyncio.wait_for(reader.read(), 600)
    except ConnectionError:
        pass
    except TimeoutError:
        return False
    return time.monotonic() - began > PATIENCE / 2


def test_a_connection_between_requests_is_kept() -> None:
    async def scene(reader: Any, writer: Any) -> bytes:
        writer.write(GET)
        await answered(reader)
        await asyncio.sleep(2 * PATIENCE)
        writer.write(GET)
        return await answered(reader)

    assert b" 200 " in served(fine, scene)


def test_half_of_a_second_request_is_waited_for_in_vain() -> None:
    async def scene(reader: Any, writer: Any) -> bool:
        writer.write(GET)
        await answered(reader)
        began = time.monotonic()
        writer.write(GET[:20])
        return await is_cut_off(reader, began)

    assert served(fine, scene)


def test_half_of_a_request_behind_a_whole_one_is_waited_for_in_vain() -> None:
    async def scene(reader: Any, writer: Any) -> bool:
        began = time.monotonic()
        writer.write(GET + GET[:20])
        await answered(reader)
        return await is_cut_off(reader, began)

    assert served(fine, scene)


def test_the_rest_of_a_body_that_nobody_reads_is_waited_for_in_vain() -> None:
    async def scene(reader: Any, writer: Any) -> bool:
        began = time.monotonic()
        writer.write(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nab")
        await answered(reader)
        return await is_cut_off(reader, began)

    assert served(fine, scene)


def test_an_answer_may_take_longer_than_clients_may() -> None:
    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(2 * PATIENCE)
        await fine(scope, receive, send)

    async def scene(reader: Any, writer: Any) -> bytes:
        writer.write(GET)
        return await answered(reader)

    assert b" 200 " in served(slow, scene)


def test_the_body_of_an_accepted_request_has_its_own_time() -> None:
    async def reads(scope: Any, receive: Any, send: Any) -> None:
        assert await Request(scope, receive).body() == b"ab" * 6
        await fine(scope, receive, send)

    async def scene(reader: Any, writer: Any) -> bytes:
        writer.write(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 12\r\n\r\n")
        for _ in range(6):
            await asyncio.sleep(PATIENCE / 3)
            writer.write(b"ab")
        return await answered(reader)

    assert b" 200 " in served(reads, scene)


def endless(parts: int) -> Any:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        async def content() -> Any:
            for _ in range(parts):
                yield PART

        await StreamingResponse(content())(scope, receive, send)

    return app


def test_a_client_that_reads_with_pauses_gets_everything() -> None:
    """Each pause is shorter than the server's patience, all of them together are longer."""

    async def scene(reader: Any, writer: Any) -> int:
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        received = 0
        for _ in range(6):
            await asyncio.sleep(PATIENCE / 3)
            for _ in range(80):
                received += len(await reader.readexactly(len(PART)))
        return received + len(await reader.read())

    assert served(endless(600), scene) > 600 * len(PART)


def test_a_client_that_stops_reading_once_more_is_cut_off() -> None:
    async def scene(reader: Any, writer: Any) -> bool:
        writer.write(GET)
        await asyncio.sleep(PATIENCE / 3)
        for _ in range(200):
            await reader.readexactly(len(PART))
        await asyncio.sleep(4 * PATIENCE)
        try:
            while await reader.readexactly(len(PART)):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            return True

    assert served(endless(10**6), scene)


def test_a_connection_that_has_ended_leaves_nothing_behind() -> None:
    transports: list[Any] = []

    class Noted(protocol(60.0, 8)):  # type: ignore[misc]
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            transports.append(weakref.ref(transport))

    async def scene(reader: Any, writer: Any) -> int:
        writer.write(GET[:20])
        while list(Noted.open.values()) != [1]:
            await asyncio.sleep(0.02)
        writer.close()
        while Noted.open or [one for one in transports if one()]:
            await asyncio.sleep(0.02)
            gc.collect()
        return len(transports)

    assert served(fine, scene, Noted) == 1
    assert not Noted.open


def test_servers_count_their_own_connections() -> None:
    one, other = protocol(1.0, 8), protocol(1.0, 8)
    one.open["127.0.0.1"] += 1
    assert not other.open and not PatientProtocol.open
