"""Connections whose client does not read, and too many of them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from starlette.responses import PlainTextResponse, StreamingResponse

from colearn.deploy.client.protocol.connection import protocol


def settings(app: Any, http: Any) -> uvicorn.Config:
    return uvicorn.Config(app, http=http, ws="none", lifespan="off", log_config=None)


def test_a_client_that_does_not_read_is_cut_off() -> None:
    async def scene() -> None:
        ended = asyncio.Event()

        async def endless() -> AsyncIterator[bytes]:
            try:
                while True:
                    yield b"x" * 65536
                    await asyncio.sleep(0)  # uvicorn takes writes to a closed connection at once
            finally:
                ended.set()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await StreamingResponse(endless())(scope, receive, send)

        listening = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(
            app, http=protocol(0.3, 8), ws="none", lifespan="off", log_config=None
        )
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve([listening]))
        with socket.create_connection(listening.getsockname()) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await asyncio.wait_for(ended.wait(), 600)
        server.should_exit = True
        await serving

    asyncio.run(scene())


def test_one_address_cannot_take_the_connections_of_another() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await PlainTextResponse("fine")(scope, receive, send)

    async def scene() -> None:
        listening = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(
            app, http=protocol(600, 4), ws="none", lifespan="off", log_config=None
        )
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve([listening]))
        port = listening.getsockname()[1]
        half = [await connect(port, "127.0.0.5", b"GET / HTTP/1.1\r\nX: ") for _ in range(3)]
        assert b" 200 " in await answer(port, "127.0.0.5")
        half.append(await connect(port, "127.0.0.5", b"GET / HTTP/1.1\r\nX: "))
        assert b" 429 " in await answer(port, "127.0.0.5")
        assert b" 200 " in await answer(port, "127.0.0.1")
        for _, writer in half:
            writer.close()
        while b" 200 " not in await answer(port, "127.0.0.5"):  # the server has not seen it yet
            await asyncio.sleep(0.05)
        server.should_exit = True
        await serving

    asyncio.run(scene())


async def connect(port: int, address: str, sent: bytes) -> Any:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
    writer.write(sent)
    return reader, writer


async def answer(port: int, address: str) -> bytes:
    request = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    reader, writer = await connect(port, address, request)
    try:
        return await asyncio.wait_for(reader.read(), 600)
    finally:
        writer.close()
