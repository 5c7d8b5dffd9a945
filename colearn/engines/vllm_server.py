"""Engine that uses vLLM servers for one base: token ids are sent over HTTP, and each server has all
weights."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from torch import Tensor

from colearn.contract import TokenAnswer, TokenHistory, TokenRequest, WeightUpdate
from colearn.errors import ServerLost
from colearn.models.base import Base
from colearn.models.weight_update import plain_weights
from colearn.rollout.agents import AgentSpec

from .checked_engine import BadSample
from .one_server import OneServer
from .ranks import Ranks
from .server_answers import BadAnswer, read_generated
from .server_link import ServerRefused
from .server_process import free_port
from .vllm_options import sampling_options, sleeps
from .vllm_server_checks import Served
from .vllm_settings import ServerSettings
from .vllm_weights import LoadedAdapter, VLLMCopy, write_weights


class Held(NamedTuple):
    """What the servers hold, as the process that writes to them tells the others."""

    served: list[Served]
    weights_name: str
    adapters: dict[str, LoadedAdapter]


class VLLMServerEngine(VLLMCopy):
    """Running servers at `urls`, or one server that this engine starts if `urls` is None.

    Sends a continued history to the server whose prefix cache holds the history, and new histories
    to the servers in turn. Samples depend only on seeds, prompts and weights. The number of servers
    therefore does not change samples, except for rounding within batches.

    The processes of a run share the servers. The first process starts, checks and writes; the other
    processes wait. Each process sends its own requests. Files of weights are written once, to a
    folder that trainer and servers share. Each version of an adapter has a separate name, so a
    restarted server does not know the current name and reports an error. Full weights have a
    version name, and every answer of a server contains this name.

    Errors: MissingExtra without vLLM; ConfigError for a server with another model or tokenizer, or
    without a needed option; ColearnError with the server's reason if a started server ends;
    ServerLost as for `write`. Errors of the first process are raised in all processes.
    """

    name = "the vLLM server"

    def __init__(
        self,
        base: Base,
        roles: Mapping[str, AgentSpec],
        settings: ServerSettings,
        urls: Sequence[str] | None,
    ) -> None:
        super().__init__(base, roles, tolerance=settings.tolerance, folder=settings.folder)
        self._settings, self._starts = settings, urls is None
        beside = settings.gpus is None
        self.sleeps = self._starts and sleeps(settings.sleep, base, beside=beside)
        self._ranks = Ranks()
        if urls is None:
            urls = [self._ranks.by_first(lambda: f"http://127.0.0.1:{free_port()}")]
        self._pool = ThreadPoolExecutor(len(urls), thread_name_prefix="server")
        self._server_of: WeakKeyDictionary[TokenHistory, int] = WeakKeyDictionary()
        """Index of the server that sampled the last action of a history."""
        self.weights_name, self._count = "", 0
        """Version name of the full weights in the servers, unique to this run."""
        self.servers: list[OneServer] = []
        try:
            for url in urls:
                self.servers.append(OneServer(url, timeout=60 * settings.request_minutes))
            self._write_by_first(self._begin)
        except BaseException:
            self.close()
            raise

    @property
    def max_length(self) -> int:
        longest = min(server.served.longest for server in self.servers)
        return min(longest, self._settings.max_length or longest)

    async def submit(self, request: TokenRequest) -> list[TokenAnswer]:
        """Answer a request. Errors: as for `singles` and `sample`."""
        singles = self.singles(request)
        if not singles:
            return []
        number = self._places(singles)[0]
        started = time.perf_counter()
        begun = self._ask(number, singles)
        # `_answers` raises these errors
        with self.busy("generate"), suppress(ServerLost, ServerRefused):
            await asyncio.wrap_future(begun)
        seconds = time.perf_counter() - started
        answers = self._answers(number, begun, singles)
        return [replace(answer, seconds=seconds) for answer in answers]

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
                begun[number] = self._ask(number, [*own.values()])
            wait(begun.values(), return_when=FIRST_EXCEPTION)
            failed = (one for one in begun if begun[one].done() and begun[one].exception())
            answers: dict[int, TokenAnswer] = {}
            for number in (*failed, *begun):
                own = by_server[number]
                answered = self._answers(number, begun[number], [*own.values()])
                answers |= zip(own, answered, strict=True)
        finally:
            for future in begun.values():
                future.cancel()  # which closes the connections
        return [answers[place] for place in range(len(requests))]

    def probe(self, requests: Sequence[TokenRequest]) -> list[list[TokenAnswer]]:
        return [
            self._answers(number, self._ask(number, requests), requests)
            for number in range(len(self.servers))
        ]

    def write(self, updates: Sequence[WeightUpdate]) -> None:
        """Load updates into all servers. Errors: ServerLost if a server does not accept the
        weights."""
        self._write_by_first(lambda: super(VLLMServerEngine, self).write(updates))
        self.asleep = False

    def load_full(self, weights: Mapping[str, Tensor]) -> None:
        self._count += 1
        folder = self.folder / f"weights-{self._count}"
        write_weights(folder, weights, self.base.compute)
        try:
            self._each(lambda server: server.load_full(folder))
        finally:
            shutil.rmtree(folder)
        self._mark()

    def load_adapter(self, adapter: LoadedAdapter) -> None:
        self._each(lambda server: server.load_adapter(adapter))

    def unload_adapter(self, adapter: LoadedAdapter) -> None:
        self._each(lambda server: server.unload_adapter(adapter))

    def fall_asleep(self) -> None:
        """Errors: ServerLost if a server does not release its memory."""
        self._ranks.by_first(lambda: self._each(lambda server: server.command("/sleep?level=1")))

    def wake_up(self) -> None:
        """Called in the process that sends the first request or weights; further calls have no
        effect on a server."""
        self._each(lambda server: server.command("/wake_up"))

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
            if self._ranks.first and not self._starts and self.adapters:
                server.unload_adapters_of(self.run)
            server.close()
        self._folder.cleanup()

    def _begin(self) -> None:
        """Start the server if necessary, check all servers and load the live weights."""
        if self._starts:
            self._each(lambda server: server.start(self, self._settings))
        self._each(lambda server: server.check(self.base, self.roles))
        if self.adapters:
            self._mark()
            self.begin_adapters()
        else:
            self.load_full(self.handed(plain_weights(self.base)))

    def _mark(self) -> None:
        """Set a version name, which no other run uses, for the servers' full weights."""
        self.weights_name = f"{self.run}-{self._count}"
        self._each(lambda server: server.mark(self.weights_name))

    def _each(self, work: Callable[[OneServer], None]) -> None:
        """Call `work` with all servers at the same time."""

        def logged(server: OneServer) -> None:
            with server.log_kept():
                work(server)

        # a single server in this thread, which an interruption ends at once
        for _ in (self._pool.map if len(self.servers) > 1 else map)(logged, self.servers):
            pass

    def _write_by_first(self, write: Callable[[], None]) -> None:
        """Let the first process write to the servers, and tell all processes what these hold."""

        def held() -> Held:
            write()
            served = [server.served for server in self.servers]
            return Held(served, self.weights_name, self.loaded_adapters)

        served, self.weights_name, self.loaded_adapters = self._ranks.by_first(held)
        for server, one in zip(self.servers, served, strict=True):
            server.served = one

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

    def _ask(self, number: int, requests: Sequence[TokenRequest]) -> Future[list[Any]]:
        """Send requests to one server; cancelling the future cancels the requests."""
        self.wake()
        server = self.servers[number]
        bodies = []
        for request in requests:
            adapter = self.loaded_for(request.agent)
            body = {
                "model": server.served.name if adapter is None else adapter.name,
                "token_ids": request.history.ids.tolist(),
                "sampling_params": sampling_options(request, self.end_ids(request)),
            }
            bodies.append(body)
        return server.begin_requests(bodies)

    def _answers(
        self, number: int, begun: Future[list[Any]], requests: Sequence[TokenRequest]
    ) -> list[TokenAnswer]:
        """Wait for the answers of one server and read them."""
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
                version=self.weights_name,
            )
            return self.answer(request, draw.tokens, draw.logprobs, cached=draw.cached)
        except (BadAnswer, BadSample) as error:
            server.link.lost(str(error))
