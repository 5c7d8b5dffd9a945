"""Connections whose client does not read."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from starlette.responses import StreamingResponse

from colearn.serve.connection import protocol


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
        config = uvicorn.Config(app, http=protocol(0.3), ws="none", lifespan="off", log_config=None)
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve([listening]))
        with socket.create_connection(listening.getsockname()) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await asyncio.wait_for(ended.wait(), 20)
        server.should_exit = True
        await serving

    asyncio.run(scene())
