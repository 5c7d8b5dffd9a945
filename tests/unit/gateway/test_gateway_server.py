"""Episodes that wait for workers, and workers that wait for episodes."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

from colearn.gateway.program_run import ProgramRun
from colearn.gateway.programs import WorkerProgram
from colearn.gateway.server import GatewayServer


@pytest.fixture
def server() -> Iterator[GatewayServer]:
    server = GatewayServer(("one",), WorkerProgram((), 0), 0)
    yield server
    server.close()


def served(server: GatewayServer, work: Coroutine[Any, Any, Any]) -> Any:
    """The result of `work` in the server's event loop."""
    for _ in range(4000):
        if server._loop is not None:
            return asyncio.run_coroutine_threadsafe(work, server._loop).result(20)
        time.sleep(0.005)
    raise AssertionError("the server has not started")


def test_waiting_workers_receive_episodes_that_are_offered_in_another_thread(
    server: GatewayServer,
) -> None:
    """Three wait; two episodes come, and the third worker is told after its time."""
    secrets = [server.hire().split("/")[-2] for _ in range(3)]

    async def ask() -> list[str | None]:
        asked = [asyncio.create_task(server.next_episode(one, 1.0)) for one in secrets]
        await asyncio.sleep(0.1)
        for item in ("owl", "bee"):
            await asyncio.to_thread(server.open, item)
        return [None if live is None else live.item for live in await asyncio.gather(*asked)]

    assert sorted(served(server, ask()), key=str) == [None, "bee", "owl"]


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
    assert served(server, server.next_episode(secret, 0.3)) is None
    assert looked.times == 1


def test_without_a_worker_that_starts_episodes_fail_until_one_asks(server: GatewayServer) -> None:
    waits = server.open("owl")
    first, second = server.hire(), server.hire()
    assert not server.lose(first, "no module")
    assert not waits.over
    server.give_up("no module")
    failed = server.open("bee")
    assert [(live.over, live.failure) for live in (waits, failed)] == [(True, "no module")] * 2
    assert served(server, server.next_episode(second.split("/")[-2], 0.01)) is None
    assert not server.open("fox").over


def test_episodes_wait_on_while_a_worker_that_has_asked_lives(server: GatewayServer) -> None:
    plays, ends = server.hire(), server.hire()
    assert served(server, server.next_episode(plays.split("/")[-2], 0.01)) is None
    waits = server.open("owl")
    assert not server.lose(ends, "no module")
    server.give_up("no module")
    assert not waits.over
    assert served(server, server.next_episode(plays.split("/")[-2], 1.0)) is waits
    assert server.lose(plays, "killed")
    assert waits.failure == "killed"


def test_an_episode_that_is_played_by_its_urls_outlives_workers_that_do_not_start(
    server: GatewayServer,
) -> None:
    played = server.open("owl")
    played.queued = False  # its first request has come
    server.give_up("no module")
    assert not played.over
