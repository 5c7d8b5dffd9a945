"""The live episodes of one process, and the server through which programs reach them."""

from __future__ import annotations

import asyncio
import itertools
import os
import secrets
import socket
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from colearn.errors import ConfigError, MissingExtra
from colearn.wire.errors import ServeError

from .live import Live
from .programs import Endpoints, Program

if TYPE_CHECKING:
    import uvicorn

_ENDED = 65536
"""Names of ended episodes that are remembered, so that they are 410 and not 404."""


class House:
    """Starts a program for each episode. The server's thread lives as long as the process.

    Errors: ConfigError where the port is taken, MissingExtra without the packages of a server.
    """

    def __init__(self, agents: Sequence[str], program: Program, port: int) -> None:
        self.agents, self.program = tuple(agents), program
        self.process = os.getpid()
        self._numbers = itertools.count()
        self._lives: dict[str, Live] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()
        self._free: deque[Live] = deque()
        """Episodes that wait for a worker."""
        self._workers: dict[str, list[Live]] = {}
        """By a worker's secret, the episodes that it plays."""
        self._listening = _listen(port)
        self.address = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._serve()
        program.begin(self)

    def hire(self) -> str:
        """The URL at which a new worker asks for its next episode."""
        secret = secrets.token_urlsafe(18)
        self._workers[secret] = []
        return f"{self.address}/workers/{secret}/next"

    def lose(self, url: str, failure: str) -> None:
        """A worker has died, and with it the episodes that it played."""
        for live in self._workers.pop(url.split("/")[-2]):
            live.close(failure)

    def open(self, item: Any) -> Live:
        """A new episode; its program has been started."""
        live = Live(next(self._numbers), self.agents, item)
        with self._lock:
            self._lives[live.name] = live
        self.program.start(live, self.endpoints(live))
        return live

    def offer(self, live: Live) -> None:
        """Let the next worker that asks play it."""
        self._free.append(live)

    async def next_episode(self, secret: str, seconds: float) -> Live | None:
        """An episode for a worker; None if there is none for so long.

        Errors: ServeError 404 for who is no worker.
        """
        if secret not in self._workers:
            raise ServeError(404, "no such path")
        playing = self._workers[secret]
        playing[:] = [live for live in playing if not live.over]
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            while self._free:
                live = self._free.popleft()
                if not live.over:
                    playing.append(live)
                    return live
            await asyncio.sleep(0.002)
        return None

    def told(self, live: Live) -> dict[str, Any]:
        """What a worker is told of an episode."""
        urls = self.endpoints(live)
        return {"item": live.item, "endpoints": urls, "reward": urls.reward, "end": urls.end}

    def endpoints(self, live: Live) -> Endpoints:
        base = f"{self.address}/episodes/{live.name}"
        return Endpoints(base, {agent: f"{base}/{agent}/v1" for agent in self.agents})

    def at(self, name: str) -> Live | None:
        """A live episode."""
        with self._lock:
            return self._lives.get(name)

    def find(self, name: str) -> Live:
        """Errors: ServeError 404 for an unknown episode, 410 for one that has ended."""
        with self._lock:
            live, ended = self._lives.get(name), name in self._ended
        if live is not None:
            return live
        if ended:
            raise ServeError(410, "this episode has ended", code="episode_ended")
        raise ServeError(404, "no such episode")

    def forget(self, live: Live) -> None:
        """The episode is over: its state is all that is left of it."""
        live.close()
        with self._lock:
            self._lives.pop(live.name, None)
            self._ended[live.name] = None
            while len(self._ended) > _ENDED:
                self._ended.popitem(last=False)

    def _serve(self) -> None:
        try:
            import uvicorn

            from .app import build_app
        except ModuleNotFoundError as error:
            raise MissingExtra(error.name or "uvicorn", "serve") from None
        config = uvicorn.Config(
            build_app(self),
            log_level="critical",
            access_log=False,
            lifespan="off",
            timeout_keep_alive=60,
            backlog=2048,
        )
        server = uvicorn.Server(config)
        threading.Thread(target=self._run, args=(server,), name="gateway", daemon=True).start()

    def _run(self, server: uvicorn.Server) -> None:
        asyncio.run(server.serve([self._listening]))


def _listen(port: int) -> socket.socket:
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind(("127.0.0.1", port))
        found.listen(2048)
    except OSError as error:
        found.close()
        raise ConfigError(
            f"task.port: {port}: {error.strerror or error}; give another one, or 0"
        ) from None
    return found
