"""Several vLLM servers for one base: each has all weights, and answers a share of the requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from typing import Any

from colearn.agents import Voice
from colearn.contract import WeightUpdate

from .token_engine import TokenAnswer, TokenEngine, TokenRequest
from .vllm import check_temperature
from .vllm_server import VLLMServerEngine


class SeveralServers(TokenEngine):
    """Sends a request to the server of its lane.

    The draws of a server are a function of seeds, prompts and weights, so the number of servers
    changes no sample but by the rounding of their batches.

    Errors: as `connect`, which is called once for each URL.
    """

    name = VLLMServerEngine.name

    def __init__(self, connect: Callable[[str], VLLMServerEngine], urls: Sequence[str]) -> None:
        with ExitStack() as opened:
            self.engines = []
            for url in urls:
                self.engines.append(connect(url))
                opened.callback(self.engines[-1].close)
            self._opened = opened.pop_all()
        self._pool = ThreadPoolExecutor(len(urls), thread_name_prefix="server")

    @property
    def lanes(self) -> int:
        return len(self.engines)

    @property
    def max_length(self) -> int:
        return min(engine.max_length for engine in self.engines)

    @classmethod
    def check_role(cls, agent: str, role: Voice) -> None:
        check_temperature(agent, role)

    def generate(self, requests: Sequence[TokenRequest]) -> list[TokenAnswer]:
        """Errors: ServerLost as soon as one server is lost; the others' requests are cancelled."""
        places: dict[int, list[int]] = {}
        for place, request in enumerate(requests):
            places.setdefault(request.lane, []).append(place)
        sent = {lane: [requests[place] for place in own] for lane, own in places.items()}
        begun: dict[int, Future[list[Any]]] = {}
        try:
            for lane, own_requests in sent.items():
                begun[lane] = self.engines[lane].begin(own_requests)
            wait(begun.values(), return_when=FIRST_EXCEPTION)
            failed = (one for one in begun if begun[one].done() and begun[one].exception())
            answers: dict[int, TokenAnswer] = {}
            for lane in (*failed, *begun):
                drawn = self.engines[lane].end(begun[lane], sent[lane])
                answers |= zip(places[lane], drawn, strict=True)
        finally:
            for future in begun.values():
                future.cancel()
        return [answers[place] for place in range(len(requests))]

    def load(self, updates: Sequence[WeightUpdate]) -> None:
        """Load into all servers at the same time.

        Errors: ServerLost if one of them does not take the weights.
        """
        list(self._pool.map(lambda engine: engine.load(updates), self.engines))

    def close(self) -> None:
        self._pool.shutdown()
        self._opened.close()
