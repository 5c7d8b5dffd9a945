"""An ASGI application on a port of the loopback, in a thread of the test's own process."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

import uvicorn


class ThreadedServer(uvicorn.Server):
    """Ends as soon as it is told to; uvicorn itself looks ten times a second, and waits."""

    def __init__(self, app: Any, **settings: Any) -> None:
        super().__init__(
            uvicorn.Config(app, log_level="critical", lifespan="off", ws="none", **settings)
        )
        self._begun, self._told = threading.Event(), asyncio.Event()

    @contextlib.contextmanager
    def serving(self) -> Iterator[str]:
        """Serves until the block is left; its value is the server's URL."""
        with socket.create_server(("127.0.0.1", 0)) as listening:
            url = f"http://127.0.0.1:{listening.getsockname()[1]}"
            thread = threading.Thread(target=self.run, kwargs={"sockets": [listening]})
            thread.start()
            assert self._begun.wait(600)
            try:
                yield url
            finally:
                self.stop()
                thread.join()

    def stop(self) -> None:
        """Closes every connection and answers nobody any more."""
        if not self.should_exit:
            self.should_exit = True
            self._loop.call_soon_threadsafe(self._told.set)

    async def main_loop(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._begun.set()
        await self._told.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for connection in [*self.server_state.connections]:
            connection.transport.abort()
        await asyncio.sleep(0)  # the connections are told of their end
