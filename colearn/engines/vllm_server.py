"""Engine that uses vLLM servers for one base: token ids are sent over HTTP, and each server has all
weights."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from weakref import WeakKeyDictionary

from colearn.contract import TokenAnswer, TokenHistory, TokenRequest, WeightUpdate
from colearn.errors import ConfigError, ServerLost
from colearn.models.base import Base
from colearn.rollout.agents import AgentSpec

from .checked_engine import BadSample, CheckedEngine
from .one_server import Held, OneServer
from .ranks import Ranks
from .server_answers import BadAnswer, read_generated
from .server_link import ServerRefused
from .server_process import free_port
from .vllm_options import LOWEST_TEMPERATURE, sampling_options
from .vllm_settings import ServerSettings


class VLLMServerEngine(CheckedEngine):
    """Running servers at `urls`, or one server that this engine starts if `urls` is None.

    Sends a continued history to the server whose prefix cache holds the history, and new histories
    to the servers in turn. Samples depend only on seeds, prompts and weights. The number of servers
    therefore does not change samples, except for rounding within batches.

    The processes of a run share the servers. The first process starts, checks and writes; the other
    processes wait. Each process sends its own requests.

    Errors: as for `OneServer.begin`. Errors of the first process are raised in all processes.
    """

    name = "the vLLM server"
    lowest_temperature = LOWEST_TEMPERATURE

    def __init__(
        self,
        base: Base,
        roles: Mapping[str, AgentSpec],
        settings: ServerSettings,
        urls: Sequence[str] | None,
    ) -> None:
        super().__init__(base, roles, tolerance=settings.tolerance)
        self._ranks = Ranks()
        starts = urls is None
        if urls is None:
            urls = [self._ranks.by_first(lambda: f"http://127.0.0.1:{free_port()}")]
        self._folder = _weights_folder(settings.folder)
        self._pool = ThreadPoolExecutor(len(urls), thread_name_prefix="server")
        self._server_of: WeakKeyDictionary[TokenHistory, int] = WeakKeyDictionary()
        """Index of the server that sampled the last action of a history."""
        self.servers: list[OneServer] = []
        try:
            for number, url in enumerate(urls):
                folder = Path(self._folder.name) / str(number)
                self.servers.append(OneServer(base, roles, settings, url, folder, starts=starts))
            self._write_by_first(lambda server: server.begin())
        except BaseException:
            self.close()
            raise

    @property
    def max_length(self) -> int:
        return min(server.max_length for server in self.servers)

    async def submit(self, request: TokenRequest) -> list[TokenAnswer]:
        """Answer a request. Errors: as for `singles` and `sample`."""
        singles = self.singles(request)
        if not singles:
            return []
        number = self._places(singles)[0]
        started = time.perf_counter()
        begun = self._begin(number, singles)
        # `_end` raises these errors
        with self.busy("generate"), suppress(ServerLost, ServerRefused):
            await asyncio.wrap_future(begun)
        seconds = time.perf_counter() - started
        return [replace(answer, seconds=seconds) for answer in self._end(number, begun, singles)]

    def sample(self, requests: Sequence[TokenRequest]) -> list[TokenAnswer]:
        """Answer requests.

        Errors: ServerLost as soon as one server ends or hangs, aborts a request, does not sample
        with the weights of the last `load`, or returns an action that the request does not allow.
        Requests to the other servers are then cancelled.
        """
        by_server: dict[int, dict[int, TokenRequest]] = {}
        for place, number in enumerate(self._places(requests)):
            by_server.setdefault(number, {})[place] = requests[place]
        begun: dict[int, Future[list[Any]]] = {}
        try:
            for number, own in by_server.items():
                begun[number] = self._begin(number, [*own.values()])
            wait(begun.values(), return_when=FIRST_EXCEPTION)
            failed = (one for one in begun if begun[one].done() and begun[one].exception())
            answers: dict[int, TokenAnswer] = {}
            for number in (*failed, *begun):
                own = by_server[number]
                answered = self._end(number, begun[number], [*own.values()])
                answers |= zip(own, answered, strict=True)
        finally:
            for future in begun.values():
                future.cancel()  # which closes the connections
        return [answers[place] for place in range(len(requests))]

    def probe(self, requests: Sequence[TokenRequest]) -> list[list[TokenAnswer]]:
        return [
            self._end(number, self._begin(number, requests), requests)
            for number in range(len(self.servers))
        ]

    def write(self, updates: Sequence[WeightUpdate]) -> None:
        """Load updates into all servers at the same time. Errors: as for `OneServer.write`."""
        self._write_by_first(lambda server: server.write(updates))
        for server in self.servers:
            server.asleep = False

    def rest(self) -> None:
        """Let a server on the trainer's device release its memory until the next request.

        Errors: ServerLost if the server does not release its memory.
        """
        for server in self.servers:
            if server.sleeps and not server.asleep:
                self._ranks.by_first(server.rest)
                server.asleep = True

    def check(self) -> None:
        """Check parity in the first process only. One process is enough, because all processes have
        the same weights and each answer names the version of the server's weights."""
        check = super().check

        def gap() -> float | None:
            check()
            return self.gap

        self.gap = self._ranks.by_first(gap)

    def close(self) -> None:
        """Unload the run's adapters, close the connections, and stop the server if this engine
        started it."""
        self._pool.shutdown()
        for server in self.servers:
            server.close(first=self._ranks.first)
        self._folder.cleanup()

    def _write_by_first(self, write: Callable[[OneServer], Held]) -> None:
        """Let the first process write to all servers at once, and tell all processes."""
        # a single server in this thread, which an interruption ends at once
        each = self._pool.map if len(self.servers) > 1 else map
        held = self._ranks.by_first(lambda: list(each(write, self.servers)))
        for server, one in zip(self.servers, held, strict=True):
            server.follow(one)

    def _places(self, requests: Sequence[TokenRequest]) -> list[int]:
        """Return the index of the server for each request. Each request has one seed. A continued
        history stays on its server. New histories go to the servers in turn, starting with the
        server determined by the first seed."""
        servers: dict[int, int] = {}
        first: int | None = None
        for request in requests:
            history, before = request.history, request.continues
            if id(history) in servers:
                continue  # another seed
            known = None if before is None else self._server_of.get(before)
            if known is None:
                known = first = request.seeds[0] if first is None else first + 1
            servers[id(history)] = known % len(self.servers)
        return [servers[id(request.history)] for request in requests]

    def _begin(self, number: int, requests: Sequence[TokenRequest]) -> Future[list[Any]]:
        server = self.servers[number]
        return server.begin_requests(
            [
                {
                    "model": server.model_of(self.adapter(request.agent)),
                    "token_ids": request.history.ids.tolist(),
                    "sampling_params": sampling_options(request, self.end_ids(request)),
                }
                for request in requests
            ]
        )

    def _end(
        self, number: int, begun: Future[list[Any]], requests: Sequence[TokenRequest]
    ) -> list[TokenAnswer]:
        server = self.servers[number]
        with server.log_kept():
            answers = [
                self._read(server, answer, request)
                for answer, request in zip(server.end_requests(begun), requests, strict=True)
            ]
        for answer in answers:
            self._server_of[answer.history] = number
        return answers

    def _read(self, server: OneServer, answer: Any, request: TokenRequest) -> TokenAnswer:
        try:
            draw = read_generated(
                answer,
                prompt=len(request.history),
                vocabulary=self.vocabulary,
                version=server.version,
            )
            return self.answer(request, draw.tokens, draw.logprobs, cached=draw.cached)
        except (BadAnswer, BadSample) as error:
            server.link.lost(str(error))


def _weights_folder(above: str | None) -> TemporaryDirectory[str]:
    """Creates the folder of weights, in `run.generator.folder` if it is set. Errors: ConfigError if
    that folder is missing or cannot be written."""
    try:
        return TemporaryDirectory(prefix="colearn-vllm-", dir=above)
    except OSError as error:
        if above is None:
            raise
        raise ConfigError(
            f"run.generator.folder: {above}: {error.strerror or error}; name a folder of this "
            "machine that can be written"
        ) from None
