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
