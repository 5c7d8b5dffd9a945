"""Several servers for one base, with stand-ins for their engines: who is asked what."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import pytest
from tiny import byte_tokenizer, tiny_model

from colearn.agents import AgentSpec, ChatFormat
from colearn.contract import Sampling, TokenAnswer, TokenHistory, TokenRequest
from colearn.errors import ServerLost
from colearn.generate.checked_engine import ParityError
from colearn.generate.several_servers import SeveralServers
from colearn.models.base import Base
from colearn.types import Action


class Server:
    """The engine of one server: answers with the seed and its own number."""

    def __init__(self, number: int, max_length: int = 100) -> None:
        self.number, self.max_length = number, max_length
        self.asked: list[list[int]] = []
        """The seeds of each call."""
        self.begun: list[Future[list[Any]]] = []
        self.written: list[Any] = []
        self.checks, self.gap, self.parity = 0, 0.1 * (number + 1), True
        self.lost = self.silent = self.closed = False
        self.writes: Callable[[], None] = lambda: None

    def begin(self, requests: Sequence[TokenRequest]) -> Future[list[Any]]:
        self.asked.append([request.seeds[0] for request in requests])
        future: Future[list[Any]] = Future()
        self.begun.append(future)
        if self.lost:
            future.set_exception(ServerLost(f"server {self.number} is gone"))
        elif not self.silent:
            future.set_result(list(requests))
        return future

    def end(self, begun: Future[list[Any]], requests: Sequence[TokenRequest]) -> list[TokenAnswer]:
        return [
            TokenAnswer(
                action=Action(f"{request.seeds[0]} of {self.number}", (self.number,), (-1.0,)),
                history=request.history.act((self.number,)),
            )
            for request in begun.result(timeout=5.0)
        ]

    async def send(self, requests: Sequence[TokenRequest]) -> list[TokenAnswer]:
        return self.end(self.begin(requests), requests)

    def check(self) -> None:
        self.checks += 1
        if not self.parity:
            raise ParityError(f"server {self.number} differs")

    def write(self, updates: Any) -> None:
        self.writes()
        self.written.append(list(updates))

    def close(self) -> None:
        self.closed = True


@pytest.fixture(scope="module")
def base() -> Base:
    return Base(tiny_model())


@pytest.fixture
def servers() -> list[Server]:
    return [Server(0), Server(1), Server(2)]


@pytest.fixture
def engine(base: Base, servers: list[Server]) -> SeveralServers:
    role = AgentSpec(chat=ChatFormat(byte_tokenizer()))
    by_url: Any = {str(server.number): server for server in servers}
    return SeveralServers(base, {"ada": role}, by_url.__getitem__, list(by_url))


def request(seed: int, *further: int, after: TokenHistory | None = None) -> TokenRequest:
    return TokenRequest(
        agent="ada",
        history=(after or TokenHistory()).observe((5, 6), None),
        continues=after,
        sampling=Sampling(max_tokens=4),
        seeds=(seed, *further),
    )


def asked(servers: list[Server]) -> list[list[int]]:
    return [[seed for call in server.asked for seed in call] for server in servers]


def test_new_histories_go_in_turn_and_the_first_seed_says_where_they_begin(
    engine: SeveralServers, servers: list[Server]
) -> None:
    engine.generate([request(7), request(0), request(0), request(0)])  # 7 % 3 = 1
    assert asked(servers) == [[0], [7, 0], [0]]


def test_the_seeds_of_one_history_share_a_server(
    engine: SeveralServers, servers: list[Server]
) -> None:
    engine.generate([request(3, 4, 5), request(6, 7)])  # 3 % 3 = 0
    assert asked(servers) == [[3, 4, 5], [6, 7], []]


def test_a_continued_history_is_asked_where_it_was_sampled(
    engine: SeveralServers, servers: list[Server]
) -> None:
    answers = engine.generate([request(2), request(0), request(0)])  # servers 2, 0, 1
    for server in servers:
        server.asked.clear()
    engine.generate([request(10 * n, after=one.history) for n, (one,) in enumerate(answers)])
    assert asked(servers) == [[10], [20], [0]]
    (alone,) = asyncio.run(engine.submit(request(99, after=answers[1][0].history)))
    assert alone.action.text == "99 of 0"


def test_answers_have_the_order_of_their_requests(engine: SeveralServers) -> None:
    drawn = engine.generate([request(n, n + 10) for n in (4, 1, 2, 5, 3)])  # 4 % 3 = 1
    assert [[answer.action.text for answer in each] for each in drawn] == [
        ["4 of 1", "14 of 1"],
        ["1 of 2", "11 of 2"],
        ["2 of 0", "12 of 0"],
        ["5 of 1", "15 of 1"],
        ["3 of 2", "13 of 2"],
    ]


def test_weights_reach_every_server_at_the_same_time(
    engine: SeveralServers, servers: list[Server]
) -> None:
    together = threading.Barrier(len(servers), timeout=5.0)
    for server in servers:
        server.writes = together.wait  # type: ignore[assignment]
    update: Any = object()
    engine.write([update])
    assert [server.written for server in servers] == [[[update]]] * 3


def test_a_server_that_did_not_take_the_weights_is_an_error(
    engine: SeveralServers, servers: list[Server]
) -> None:
    def gone() -> None:
        raise ServerLost("gone")

    servers[1].writes = gone
    with pytest.raises(ServerLost, match="gone"):
        engine.write([])


@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_every_server_is_checked_and_the_largest_gap_is_told(
    engine: SeveralServers, servers: list[Server], wrong: int
) -> None:
    engine.check()
    assert [server.checks for server in servers] == [1, 1, 1]
    assert engine.gap == pytest.approx(0.3)
    servers[wrong].parity = False
    with pytest.raises(ParityError, match=f"server {wrong}"):
        engine.check()


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_lost_server_is_told_at_once_and_the_others_stop_decoding(
    engine: SeveralServers, servers: list[Server], lost: int
) -> None:
    for server in servers:
        server.lost, server.silent = server.number == lost, server.number != lost
    with pytest.raises(ServerLost, match=f"server {lost} is gone"):
        engine.generate([request(n) for n in range(6)])
    assert all(one.begun[0].cancelled() for one in servers if one.silent)


def test_histories_fit_every_server(base: Base) -> None:
    lengths = {"a": 30, "b": 20, "c": 40}
    engine = SeveralServers(
        base,
        {},
        lambda url: Server(0, lengths[url]),
        list(lengths),  # type: ignore[arg-type]
    )
    assert engine.max_length == 20


def test_all_servers_are_left_at_the_end_and_where_one_is_not_there(
    engine: SeveralServers, servers: list[Server], base: Base
) -> None:
    engine.close()
    assert [server.closed for server in servers] == [True] * 3
    opened: list[Server] = []

    def connect(url: str) -> Any:
        if url == "c":
            raise ServerLost("no server at c")
        opened.append(Server(len(opened)))
        return opened[-1]

    with pytest.raises(ServerLost, match="at c"):
        SeveralServers(base, {}, connect, ["a", "b", "c"])
    assert [server.closed for server in opened] == [True, True]
