"""Server process: runs an agent's service under uvicorn until a graceful shutdown."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from pathlib import Path
from types import FrameType

import uvicorn

from colearn.deploy.client.protocol.connection import protocol
from colearn.deploy.client.protocol.limits import ServerLimits
from colearn.deploy.client.protocol.listening import listen
from colearn.errors import ColearnError, printable

from .access import names_to_call
from .agent import ServedAgent
from .app import build_app
from .guard import Guard
from .service import Service

_CONNECTIONS = 2048


class EngineFailed(ColearnError):
    """Raised when the server has stopped because the model failed repeatedly."""


def serve(
    folder: Path,
    *,
    host: str,
    port: int,
    token: str | None,
    limits: ServerLimits,
    device: str,
    context: int | None,
    threads: int | None = None,
) -> None:
    """Serves until SIGTERM or SIGINT; a second signal stops the server without a grace period.

    Errors: ConfigError before the start; EngineFailed.
    """
    agent = ServedAgent(folder, device=device, context=context, threads=threads)
    listening = listen(host, port, field=f"--host {host} --port")
    logging.basicConfig(format="%(asctime)s %(message)s", stream=sys.stderr)
    logging.getLogger("colearn.deploy.serve.access").setLevel(logging.INFO)
    asyncio.run(_serve(agent, listening, host, token, limits))


async def _serve(
    agent: ServedAgent, listening: socket.socket, host: str, token: str | None, limits: ServerLimits
) -> None:
    failed = asyncio.Event()
    service = Service(agent, limits, failed.set)
    guard = Guard(
        build_app(service),
        token=token,
        hosts=names_to_call(host, token),
        draining=lambda: service.draining,
        seen=service.seen,
    )
    config = uvicorn.Config(
        guard,
        http=protocol(limits.read_timeout),
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        limit_concurrency=_CONNECTIONS,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=1,
    )
    server = _DrainingServer(config)
    service.start()
    name, bound = listening.getsockname()[:2]
    address = f"[{name}]" if ":" in name else name
    print(announced(agent.name, f"http://{address}:{bound}/v1"), flush=True)
    ending = asyncio.create_task(_end(server, service, failed))
    try:
        await server.serve([listening])
    finally:
        ending.cancel()
        service.close()
    if failed.is_set():
        raise EngineFailed("the model failed repeatedly; see the errors above, then start anew")


def announced(name: str, url: str) -> str:
    """The line that tells where an agent is served. Its name comes from a folder that may be
    someone else's."""
    return f"agent '{printable(name)}' at {url}"


async def _end(server: _DrainingServer, service: Service, failed: asyncio.Event) -> None:
    """Waits for a signal or a failure, then refuses new requests. After a signal, running requests
    may finish within the grace period."""
    stop = asyncio.create_task(server.asked.wait())
    broken = asyncio.create_task(failed.wait())
    await asyncio.wait((stop, broken), return_when=asyncio.FIRST_COMPLETED)
    service.draining = True
    if not failed.is_set():
        try:
            async with asyncio.timeout(service.limits.grace):
                while service.turns:
                    await asyncio.sleep(0.02)
        except TimeoutError:
            print("error: shutdown grace exceeded, running requests are cancelled", file=sys.stderr)
    # requests that still wait are answered before the sockets close
    await asyncio.to_thread(service.worker.close)
    await asyncio.sleep(0.05)
    server.should_exit = True


class _DrainingServer(uvicorn.Server):
    """Shuts down gracefully on a signal; uvicorn's handler would close /health at once."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.asked = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.asked.is_set():
            self.force_exit = self.should_exit = True
        self._loop.call_soon_threadsafe(self.asked.set)
