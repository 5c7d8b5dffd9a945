"""Several servers for one base, with stand-ins for the servers: which is asked what."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from tiny import byte_tokenizer, tiny_model

from colearn.contract import Sampling, TokenHistory, TokenRequest
from colearn.contract.types import Action
from colearn.engines import vllm_server
from colearn.engines.checked_engine import ParityError
from colearn.engines.kinds import VLLMServer
from colearn.engines.vllm_server import VLLMServerEngine
from colearn.engines.vllm_server_checks import Served
from colearn.errors import ConfigError, ServerLost
from colearn.models.base import Base
from colearn.models.network import Network
from colearn.models.weight_update import weight_update
from colearn.rollout.agents import AgentSpec, ChatFormat

FIRST = 20
"""Token of the number 0."""


@pytest.mark.parametrize("taken", [False, True], ids=["missing", "a file"])
def test_a_shared_folder_that_is_none_is_one_line(tmp_path: Path, taken: bool) -> None:
    folder = tmp_path / "shared"
    if taken:
        folder.write_text("")
    kind = VLLMServer(url="http://localhost:1", folder=str(folder))
    with pytest.raises(ConfigError) as told:
        kind.build(Base(tiny_model()), {})
    line = str(told.value)
    assert line.startswith(f"run.generator.folder: {folder}: ") and "\n" not in line
    assert line.endswith("; name a folder of this machine that can be written")


def source(action: Action) -> tuple[int, int]:
    """The number of the server that sampled an action, and the seed."""
    return action.tokens[0] - FIRST, action.tokens[1] - FIRST


class Server:
    """One server: an action's first tokens are the server's number and the request's seed."""

    def __init__(self, number: int) -> None:
        self.number, self.served = number, Served("base", 100)
        self.asked: list[list[int]] = []
        """The seeds of each call."""
        self.begun: list[Future[list[Any]]] = []
        self.loaded: list[Path] = []
        self.lost = self.silent = self.closed = self.absent = False
        self.loads: Callable[[], None] = lambda: None

    def check(self, base: Base, roles: Mapping[str, AgentSpec]) -> None:
        if self.absent:
            raise ServerLost(f"no server {self.number}")

    def mark(self, version: str) -> None:
        self.version = version

    def log_kept(self) -> AbstractContextManager[None]:
        return nullcontext()

    def begin_requests(self, bodies: Sequence[Mapping[str, Any]]) -> Future[list[Any]]:
        asked = [body["sampling_params"] for body in bodies]
        self.asked.append([params["seed"] for params in asked])
        future: Future[list[Any]] = Future()
        self.begun.append(future)
        if self.lost:
            future.set_exception(ServerLost(f"server {self.number} is gone"))
        elif not self.silent:
            future.set_result([self.answer(**params) for params in asked])
        return future

    def end_requests(self, begun: Future[list[Any]]) -> list[Any]:
        return begun.result(timeout=600.0)

    def answer(self, seed: int, max_tokens: int, **_: Any) -> Any:
        tokens = [FIRST + self.number, FIRST + seed, *(max_tokens - 2) * [FIRST]]
        scored = [{"token_id": token, "logprob": -1.0} for token in tokens]
        choice = {
            "finish_reason": "length",
            "token_ids": tokens,
            "weight_versions": [{"version": self.version}],
            "logprobs": {"content": scored},
        }
        return {"choices": [choice], "usage": {}}

    def load_full(self, folder: Path) -> None:
        self.loads()
        self.loaded.append(folder)

    def close(self) -> None:
        self.closed = True


@pytest.fixture(scope="module")
def base() -> Base:
    return Base(tiny_model())


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> list[Server]:
    """Three servers at the URLs 0, 1 and 2."""
    three = [Server(0), Server(1), Server(2)]
    monkeypatch.setattr(vllm_server, "OneServer", lambda url, **_: three[int(url)])
    return three


def built(base: Base) -> VLLMServerEngine:
    roles = {"ada": AgentSpec(chat=ChatFormat(byte_tokenizer()))}
    return VLLMServerEngine(base, roles, VLLMServer(tolerance=1.0), ["0", "1", "2"])


@pytest.fixture
def engine(base: Base, servers: list[Server]) -> VLLMServerEngine:
    return built(base)


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
    engine: VLLMServerEngine, servers: list[Server]
) -> None:
    engine.generate([request(7), request(0), request(0), request(0)])  # 7 % 3 = 1
    assert asked(servers) == [[0], [7, 0], [0]]


def test_the_seeds_of_one_history_share_a_server(
    engine: VLLMServerEngine, servers: list[Server]
) -> None:
    engine.generate([request(3, 4, 5), request(6, 7)])  # 3 % 3 = 0
    assert asked(servers) == [[3, 4, 5], [6, 7], []]


def test_a_continued_history_is_asked_where_it_was_sampled(
    engine: VLLMServerEngine, servers: list[Server]
) -> None:
    answers = engine.generate([request(2), request(0), request(0)])  # servers 2, 0, 1
    for server in servers:
        server.asked.clear()
    engine.generate([request(10 * n, after=one.history) for n, (one,) in enumerate(answers)])
    assert asked(servers) == [[10], [20], [0]]
    (alone,) = asyncio.run(engine.submit(request(99, after=answers[1][0].history)))
    assert source(alone.action) == (0, 99)


def test_answers_have_the_order_of_their_requests(engine: VLLMServerEngine) -> None:
    drawn = engine.generate([request(n, n + 10) for n in (4, 1, 2, 5, 3)])  # 4 % 3 = 1
    assert [[source(answer.action) for answer in each] for each in drawn] == [
        [(1, 4), (1, 14)],
        [(2, 1), (2, 11)],
        [(0, 2), (0, 12)],
        [(1, 5), (1, 15)],
        [(2, 3), (2, 13)],
    ]


def test_weights_reach_every_server_at_the_same_time(
    engine: VLLMServerEngine, servers: list[Server]
) -> None:
    together = threading.Barrier(len(servers), timeout=600.0)
    for server in servers:
        server.loads = together.wait  # type: ignore[assignment]
    engine.write([weight_update(Network(engine.base, None), 1)])
    assert len({server.version for server in servers}) == 1
    assert len({server.loaded[-1] for server in servers}) == 1
    assert len(set(servers[0].loaded)) == 2, "the start and the update"


def test_a_server_that_did_not_take_the_weights_is_an_error(
    engine: VLLMServerEngine, servers: list[Server]
) -> None:
    def gone() -> None:
        raise ServerLost("gone")

    servers[1].loads = gone
    with pytest.raises(ServerLost, match="gone"):
        engine.write([weight_update(Network(engine.base, None), 1)])


@pytest.mark.parametrize("wrong", [0, 2])
def test_every_server_is_checked_and_the_largest_gap_is_told(
    engine: VLLMServerEngine,
    servers: list[Server],
    wrong: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gaps = [0.1, 0.2, 0.3]
    monkeypatch.setattr(engine, "_gap", lambda request, action: gaps[source(action)[0]])
    engine.check()
    assert [len(server.asked) for server in servers] == [1, 1, 1]
    assert engine.gap == 0.3
    gaps[wrong] = 2.0
    with pytest.raises(ParityError, match="by 2 nats"):
        engine.check()


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_lost_server_is_told_at_once_and_the_others_stop_decoding(
    engine: VLLMServerEngine, servers: list[Server], lost: int
) -> None:
    for server in servers:
        server.lost, server.silent = server.number == lost, server.number != lost
    with pytest.raises(ServerLost, match=f"server {lost} is gone"):
        engine.generate([request(n) for n in range(6)])
    assert all(one.begun[0].cancelled() for one in servers if one.silent)


def test_histories_fit_every_server(engine: VLLMServerEngine, servers: list[Server]) -> None:
    for server, length in zip(servers, (30, 20, 40), strict=True):
        server.served = Served("base", length)
    assert engine.max_length == 20


def test_all_servers_are_left_at_the_end_and_where_one_is_not_there(
    servers: list[Server], base: Base
) -> None:
    built(base).close()
    assert [server.closed for server in servers] == [True] * 3
    for server in servers:
        server.closed, server.absent = False, server.number == 2
    with pytest.raises(ServerLost, match="no server 2"):
        built(base)
    assert [server.closed for server in servers] == [True] * 3


def test_an_answer_says_how_long_it_took(engine: VLLMServerEngine) -> None:
    (alone,) = asyncio.run(engine.submit(request(3)))
    assert alone.seconds > 0.0


def test_a_server_has_as_many_minutes_for_a_request_as_are_set(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[float] = []

    def one(url: str, *, timeout: float) -> Server:
        limits.append(timeout)
        return Server(0)

    monkeypatch.setattr(vllm_server, "OneServer", one)
    roles = {"ada": AgentSpec(chat=ChatFormat(byte_tokenizer()))}
    VLLMServerEngine(base, roles, VLLMServer(tolerance=1.0, request_minutes=2.0), ["0"])
    assert limits == [120.0]
