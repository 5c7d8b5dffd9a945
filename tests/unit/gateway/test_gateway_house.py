"""Episodes that wait for workers, and workers that wait for episodes."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

from colearn.gateway.house import House
from colearn.gateway.live import Live
from colearn.gateway.programs import WorkerProgram


@pytest.fixture
def house() -> Iterator[House]:
    house = House(("one",), WorkerProgram((), 0), 0)
    yield house
    house.close()


def served(house: House, work: Coroutine[Any, Any, Any]) -> Any:
    """The result of `work` in the server's event loop."""
    for _ in range(4000):
        if house._loop is not None:
            return asyncio.run_coroutine_threadsafe(work, house._loop).result(20)
        time.sleep(0.005)
    raise AssertionError("the server has not started")


def test_waiting_workers_receive_episodes_that_are_offered_in_another_thread(
    house: House,
) -> None:
    """Three wait; two episodes come, and the third worker is told after its time."""
    secrets = [house.hire().split("/")[-2] for _ in range(3)]

    async def ask() -> list[str | None]:
        asked = [asyncio.create_task(house.next_episode(one, 1.0)) for one in secrets]
        await asyncio.sleep(0.1)
        for item in ("owl", "bee"):
            await asyncio.to_thread(house.open, item)
        return [None if live is None else live.item for live in await asyncio.gather(*asked)]

    assert sorted(served(house, ask()), key=str) == [None, "bee", "owl"]


class Looked(deque[Live]):
    """Counts how often somebody looks whether it is empty."""

    times = 0

    def __len__(self) -> int:
        self.times += 1
        return super().__len__()


def test_a_worker_that_waits_does_not_poll(house: House) -> None:
    """It costs nothing while other episodes are played."""
    house._free = looked = Looked()
    secret = house.hire().split("/")[-2]
    assert served(house, house.next_episode(secret, 0.3)) is None
    assert looked.times == 1
