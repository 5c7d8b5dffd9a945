"""HTTP server of one process. Programs reach the live episodes through this server."""

from __future__ import annotations

import asyncio
import itertools
import math
import os
import secrets
import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from colearn.deploy.client.protocol.errors import ServeError
from colearn.deploy.client.protocol.listening import listen
from colearn.errors import MissingExtra
from colearn.text.json_value import copied

from .program_run import ProgramRun
from .programs import Endpoints, ProgramRunner

if TYPE_CHECKING:
    import uvicorn

_ENDED = 65536
"""Number of ended episodes whose names are kept. A request to one of these episodes is answered
with status 410, not 404."""


class GatewayServer:
    """Starts a program for each episode, and answers the program's requests in a thread of this
    process.

    Errors: ConfigError if the port is taken; MissingExtra if the packages of a server are not
    installed.
    """

    def __init__(
        self,
        agents: Sequence[str],
        program: ProgramRunner,
        port: int,
        *,
        ignored: frozenset[str] = frozenset(),
    ) -> None:
        self.agents, self.program = tuple(agents), program
        self.ignored = ignored
        """Sampling fields that have no effect in a request."""
        self.process = os.getpid()
        self._numbers = itertools.count()
        self._lives: dict[str, ProgramRun] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()
        self._free: deque[ProgramRun] = deque()
        """Episodes that wait for a worker."""
        self._loop: asyncio.AbstractEventLoop | None = None
        """The server's event loop; None until the loop runs."""
        self._offered = asyncio.Event()
        """Set when an episode is queued."""
        self._workers: dict[str, list[ProgramRun] | None] = {}
        """The episodes that each worker plays; None until it has asked for one. The key is the
        worker's secret."""
        self._asking = 0
        """Number of requests for episodes that wait for an answer."""
        self._unable: str | None = None
        """Why no worker starts, until one asks for an episode."""
        self._listening = listen("127.0.0.1", port, field="task.port")
        self.address = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._server = self._build()
        self._thread = threading.Thread(target=self._serve, name="gateway", daemon=True)
        self._thread.start()
        program.begin(self)

    def hire(self) -> str:
        """Registers a worker; returns the URL at which it asks for episodes."""
        secret = secrets.token_urlsafe(18)
        self._workers[secret] = None
        return f"{self.address}/workers/{secret}/next"

    def lose(self, url: str, failure: str) -> bool:
        """Ends the episodes of a worker that has died. Returns whether it had asked for one."""
        playing = self._workers.pop(url.split("/")[-2])
        for live in playing or ():
            live.close(failure)
        return playing is not None

    def give_up(self, failure: str) -> None:
        """Ends the episodes that wait for a worker, and from now on each new one, unless a worker
        has asked for episodes; the first worker that asks ends this state."""
        if any(playing is not None for playing in list(self._workers.values())):
            return
        self._unable = failure
        while self._free:
            with suppress(IndexError):  # a worker took it
                live = self._free.popleft()
                if live.queued:  # nobody plays it by its URLs
                    live.close(failure)

    def open(self, item: Any) -> ProgramRun:
        """Opens an episode and starts its program."""
        live = ProgramRun(next(self._numbers), self.agents, copied(item))
        with self._lock:
            self._lives[live.name] = live
        self.program.start(live, self.endpoints(live))
        return live

    def offer(self, live: ProgramRun) -> None:
        """Queues an episode for the next worker that asks."""
        live.queued = True
        if self._unable is not None:
            live.close(self._unable)
            return
        self._free.append(live)
        if self._loop is not None:  # before the loop runs, no worker can wait
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._offered.set)

    async def next_episodes(self, secret: str, most: int, seconds: float) -> list[ProgramRun]:
        """Waits for episodes for a worker; returns at most `most` episodes, and none after
        `seconds`.

        Errors: ServeError 404 for a secret that belongs to no worker.
        """
        if secret not in self._workers:
            raise ServeError(404, "no such path")
        playing = self._workers[secret]
        # the worker's other requests that wait add to the same list
        playing = self._workers[secret] = [] if playing is None else playing
        playing[:] = [live for live in playing if not live.over]
        self._unable = None
        self._asking += 1
        try:
            async with asyncio.timeout(seconds):
                while not (episodes := self._take(most)):
                    self._offered.clear()
                    await self._offered.wait()
        except TimeoutError:
            episodes = []
        finally:
            self._asking -= 1
        playing += episodes
        return episodes

    def _take(self, most: int) -> list[ProgramRun]:
        """Removes queued episodes: an equal share of them for each request that waits."""
        share = min(most, math.ceil(len(self._free) / self._asking))
        episodes: list[ProgramRun] = []
        while len(episodes) < share and self._free:
            live = self._free.popleft()
            if live.queued and not live.over:
                live.queued = False
                episodes.append(live)
        return episodes

    def describe(self, live: ProgramRun) -> dict[str, Any]:
        """Returns an episode's item and URLs, as a worker receives them."""
        urls = self.endpoints(live)
        return {"item": live.item, "endpoints": urls, "reward": urls.reward, "end": urls.end}

    def endpoints(self, live: ProgramRun) -> Endpoints:
        """Returns the base URL of each agent in an episode."""
        base = f"{self.address}/episodes/{live.name}"
        return Endpoints(base, {agent: f"{base}/{agent}/v1" for agent in self.agents})

    def at(self, name: str) -> ProgramRun | None:
        """Returns a live episode, or None."""
        with self._lock:
            return self._lives.get(name)

    def find(self, name: str) -> ProgramRun:
        """Errors: ServeError 404 for an unknown episode, 410 for one that has ended."""
        with self._lock:
            live, ended = self._lives.get(name), name in self._ended
        if live is not None:
            return live
        if ended:
            raise ServeError(410, "this episode has ended", code="episode_ended")
        raise ServeError(404, "no such episode")

    def interrupt(self, failure: str) -> None:
        """Ends all live episodes."""
        with self._lock:
            lives = list(self._lives.values())
        for live in lives:
            live.close(failure)

    def close(self) -> None:
        """Ends all live episodes, the workers and the server."""
        self.program.end()
        self.interrupt("the server was closed")
        self._server.should_exit = self._server.force_exit = True
        self._thread.join()

    def forget(self, live: ProgramRun) -> None:
        """Closes an episode and removes it from the live episodes."""
        live.close()
        with self._lock:
            self._lives.pop(live.name, None)
            self._ended[live.name] = None
            while len(self._ended) > _ENDED:
                self._ended.popitem(last=False)

    def _build(self) -> uvicorn.Server:
        try:
            import uvicorn

            from .app import build_app
            from .connections import program_protocol
        except ModuleNotFoundError as error:
            raise MissingExtra(error.name or "uvicorn", "serve") from None
        config = uvicorn.Config(
            build_app(self),
            http=program_protocol(),
            log_level="critical",
            access_log=False,
            lifespan="off",
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=60,
            backlog=2048,
        )
        return uvicorn.Server(config)

    def _serve(self) -> None:
        async def main() -> None:
            self._loop = asyncio.get_running_loop()
            await self._server.serve([self._listening])

        asyncio.run(main())
