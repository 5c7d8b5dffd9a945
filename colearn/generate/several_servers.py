"""Distributes requests over several vLLM servers for one base. Each server has all weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from typing import Any
from weakref import WeakKeyDictionary

from colearn.agents import AgentSpec
from colearn.contract import TokenAnswer, TokenHistory, TokenRequest, WeightUpdate
from colearn.models.base import Base

from .checked_engine import CheckedEngine
from .vllm_server import VLLMServerEngine


class SeveralServers(CheckedEngine):
    """Sends a continued history to the server whose prefix cache holds the history, and new
    histories to the servers in turn.

    Samples depend only on seeds, prompts and weights. The number of servers therefore does not
    change samples, except for rounding within batches.

    Errors: as `connect`, which is called once per URL.
    """

    name = VLLMServerEngine.name

    def __init__(
        self,
        base: Base,
        roles: Mapping[str, AgentSpec],
        connect: Callable[[str], VLLMServerEngine],
        urls: Sequence[str],
        *,
        tolerance: float | None = None,
    ) -> None:
        super().__init__(base, roles, tolerance=tolerance)
        with ExitStack() as opened:
            self.engines = []
            for url in urls:
                self.engines.append(connect(url))
                opened.callback(self.engines[-1].close)
            self._opened = opened.pop_all()
        self._pool = ThreadPoolExecutor(len(urls), thread_name_prefix="server")
        self._server_of: WeakKeyDictionary[TokenHistory, int] = WeakKeyDictionary()
        """Index of the server that sampled the last action of a history."""

    @property
    def max_length(self) -> int:
        return min(engine.max_length for engine in self.engines)

    @classmethod
    def check_role(cls, agent: str, role: AgentSpec) -> None:
        VLLMServerEngine.check_role(agent, role)

    async def submit(self, request: TokenRequest) -> list[TokenAnswer]:
        """Answer a request. Errors: as for `VLLMServerEngine.submit`."""
        singles = self.singles(request)
        if not singles:
            return []
        server = self._servers(singles)[0]
        with self.busy("generate"):
            return self._noted(server, await self.engines[server].send(singles))

    def sample(self, requests: Sequence[TokenRequest]) -> list[TokenAnswer]:
        """Answer requests. Errors: ServerLost as soon as one server is lost. Requests to the other
        servers are then cancelled."""
        places: dict[int, list[int]] = {}
        for place, server in enumerate(self._servers(requests)):
            places.setdefault(server, []).append(place)
        by_server = {
            server: [requests[place] for place in server_places]
            for server, server_places in places.items()
        }
        begun: dict[int, Future[list[Any]]] = {}
        try:
            for server, own_requests in by_server.items():
                begun[server] = self.engines[server].begin(own_requests)
            wait(begun.values(), return_when=FIRST_EXCEPTION)
            failed = (
                server for server in begun if begun[server].done() and begun[server].exception()
            )
            answers: dict[int, TokenAnswer] = {}
            for server in (*failed, *begun):
                samples = self.engines[server].end(begun[server], by_server[server])
                answers |= zip(places[server], self._noted(server, samples), strict=True)
        finally:
            for future in begun.values():
                future.cancel()
        return [answers[place] for place in range(len(requests))]

    def check(self) -> None:
        """Check every server. Errors: ParityError if one server's log-probabilities differ."""
        for engine in self.engines:
            try:
                engine.check()
            finally:
                self.gap = max(engine.gap or 0.0 for engine in self.engines)

    def write(self, updates: Sequence[WeightUpdate]) -> None:
        """Load updates into all servers at the same time.

        Errors: ServerLost if one of the servers does not accept the weights.
        """
        list(self._pool.map(lambda engine: engine.write(updates), self.engines))

    def close(self) -> None:
        self._pool.shutdown()
        self._opened.close()

    def _servers(self, requests: Sequence[TokenRequest]) -> list[int]:
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
            servers[id(history)] = known % len(self.engines)
        return [servers[id(request.history)] for request in requests]

    def _noted(self, server: int, answers: list[TokenAnswer]) -> list[TokenAnswer]:
        for answer in answers:
            self._server_of[answer.history] = server
        return answers
