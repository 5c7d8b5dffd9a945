"""Episodes that wait for workers, and workers that wait for episodes."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Coroutine, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from starlette.testclient import TestClient

from colearn.programs.gateway.app import build_app
from colearn.programs.gateway.program_run import ProgramRun
from colearn.programs.gateway.programs import WorkerProgram
from colearn.programs.gateway.server import GatewayServer


@pytest.fixture
def server() -> Iterator[GatewayServer]:
    server = GatewayServer(("one",), WorkerProgram((), 0), 0)
    yield server
    server.close()


def served(server: GatewayServer, work: Coroutine[Any, Any, Any]) -> Any:
    """The result of `work` in the server's event loop."""
    for _ in range(120_000):
        if server._loop is not None:
            return asyncio.run_coroutine_threadsafe(work, server._loop).result(600)
        time.sleep(0.005)
    raise AssertionError("the server has not started")


def test_waiting_workers_receive_episodes_that_are_offered_in_another_thread(
    server: GatewayServer,
) -> None:
    """Three wait; two episodes come, and the third worker waits on."""
    secrets = [server.hire().split("/")[-2] for _ in range(3)]

    async def ask() -> list[str]:
        asked = [asyncio.create_task(server.next_episodes(one, 1, 600.0)) for one in secrets]
        await asyncio.sleep(0.1)
        for item in ("owl", "bee"):
            await asyncio.to_thread(server.open, item)
        items = [live.item for one in asked[:2] for live in await one]
        assert not asked[2].done()
        asked[2].cancel()
        return items

    assert sorted(served(server, ask())) == ["bee", "owl"]


def test_workers_that_wait_receive_equal_shares_of_the_episodes(server: GatewayServer) -> None:
    """The first of two takes three of five. They may use one URL, as workers started by hand do."""
    secret = server.hire().split("/")[-2]

    async def ask() -> list[list[int]]:
        asked = [asyncio.create_task(server.next_episodes(secret, 64, 600.0)) for _ in range(2)]
        await asyncio.sleep(0.1)
        for item in range(5):
            server.open(item)
        return [[live.item for live in lives] for lives in await asyncio.gather(*asked)]

    assert served(server, ask()) == [[0, 1, 2], [3, 4]]


def test_a_worker_receives_at_most_as_many_episodes_as_it_asks_for(server: GatewayServer) -> None:
    secret = server.hire().split("/")[-2]
    for item in range(3):
        server.open(item)
    lives = served(server, server.next_episodes(secret, 2, 600.0))
    assert [live.item for live in lives] == [0, 1]
    assert server.lose(f"/{secret}/next", "killed")
    assert [live.failure for live in lives] == ["killed"] * 2


def test_a_worker_that_dies_fails_the_episodes_of_all_its_requests(server: GatewayServer) -> None:
    """Those of the request that had waited longest were played by nobody until their time limit."""
    worker = server.hire()

    async def ask() -> None:
        secret = worker.split("/")[-2]
        asked = [asyncio.create_task(server.next_episodes(secret, 1, 600.0)) for _ in range(2)]
        await asyncio.sleep(0.1)
        lives.extend(server.open(item) for item in range(2))
        await asyncio.gather(*asked)

    lives = list[ProgramRun]()
    served(server, ask())
    assert server.lose(worker, "killed")
    assert [live.failure for live in lives] == ["killed"] * 2


class Looked(deque[ProgramRun]):
    """Counts how often somebody looks whether it is empty."""

    times = 0

    def __len__(self) -> int:
        self.times += 1
        return super().__len__()


def test_a_worker_that_waits_does_not_poll(server: GatewayServer) -> None:
    """It costs nothing while other episodes are played."""
    server._free = looked = Looked()
    secret = server.hire().split("/")[-2]
    assert served(server, server.next_episodes(secret, 1, 0.3)) == []
    assert looked.times == 1


def test_without_a_worker_that_starts_episodes_fail_until_one_asks(server: GatewayServer) -> None:
    waits = server.open("owl")
    first, second = server.hire(), server.hire()
    assert not server.lose(first, "no module")
    assert not waits.over
    server.give_up("no module")
    failed = server.open("bee")
    assert [(live.over, live.failure) for live in (waits, failed)] == [(True, "no module")] * 2
    assert served(server, server.next_episodes(second.split("/")[-2], 1, 0.01)) == []
    assert not server.open("fox").over


def test_episodes_wait_on_while_a_worker_that_has_asked_lives(server: GatewayServer) -> None:
    plays, ends = server.hire(), server.hire()
    assert served(server, server.next_episodes(plays.split("/")[-2], 1, 0.01)) == []
    waits = server.open("owl")
    assert not server.lose(ends, "no module")
    server.give_up("no module")
    assert not waits.over
    assert served(server, server.next_episodes(plays.split("/")[-2], 1, 600.0)) == [waits]
    assert server.lose(plays, "killed")
    assert waits.failure == "killed"


def test_an_episode_that_is_played_by_its_urls_outlives_workers_that_do_not_start(
    server: GatewayServer,
) -> None:
    played = server.open("owl")
    played.queued = False  # its first request has come
    server.give_up("no module")
    assert not played.over


class Offers:
    """Offers the episodes 0, 1 and 2 to every worker."""

    ignored = frozenset[str]()

    async def next_episodes(self, secret: str, most: int, seconds: float) -> list[int]:
        return [0, 1, 2][:most]

    def describe(self, episode: int) -> dict[str, int]:
        return {"item": episode}


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        ({}, {"item": 0}),
        ({"most": 1}, {"episodes": [{"item": 0}]}),
        ({"most": 2}, {"episodes": [{"item": 0}, {"item": 1}]}),
    ],
)
def test_a_worker_says_how_many_episodes_it_takes(body: Any, answer: Any) -> None:
    """Without a number, the answer is one episode."""
    response = TestClient(build_app(cast(Any, Offers()))).post("/workers/one/next", json=body)
    assert response.json() == answer


@pytest.mark.parametrize("most", [0, -1, True, "2", 1.5])
def test_a_number_of_episodes_that_is_none_is_refused(most: Any) -> None:
    client = TestClient(build_app(cast(Any, Offers())))
    response = client.post("/workers/one/next", json={"most": most})
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "most"


@pytest.mark.parametrize("value", [True, False, "1", None, [1], {}])
def test_a_reward_that_is_no_number_is_refused(value: Any) -> None:
    """JSON's `true` is no number, though Python's True is one."""
    live = ProgramRun(0, ("one",), "item")
    reception = SimpleNamespace(find=lambda name: live, ignored=frozenset())
    client = TestClient(build_app(cast(Any, reception)))
    refused = client.post("/episodes/0-x/reward", json={"value": value})
    assert refused.status_code == 400 and live.rewards() == []
    assert "must be a number" in refused.json()["error"]["message"]
    assert client.post("/episodes/0-x/reward", json={"value": 1}).status_code == 204
