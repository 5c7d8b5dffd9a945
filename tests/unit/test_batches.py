"""Batching of concurrent requests: who forms a batch, who takes turns, and errors."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from colearn.contract.batches import BatchQueue


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(120_000):
        if condition():
            return
        threading.Event().wait(0.005)
    raise AssertionError("waited for ten minutes")


class Noted:
    """Answers in capitals; notes the batches, and holds the first of them until `go_on`."""

    def __init__(self, place: object = "here") -> None:
        self.batches: list[list[str]] = []
        self.go_on = threading.Event()
        self.queue: BatchQueue[str, str] = BatchQueue(self.answer, lambda: place)

    def answer(self, asked: Sequence[str]) -> list[str]:
        self.batches.append(list(asked))
        if len(self.batches) == 1:
            assert self.go_on.wait(600)
        return [text.upper() for text in asked]

    async def submit(self, *asked: str) -> list[str]:
        answers = await asyncio.gather(*map(self.queue.submit, asked))
        assert all(seconds >= 0.0 for _, seconds in answers)
        return [answer for answer, _ in answers]


def test_requests_of_one_turn_are_one_batch_and_later_ones_the_next() -> None:
    noted = Noted()

    async def main() -> Any:
        first = asyncio.create_task(noted.submit("a", "b", "c"))
        await asyncio.to_thread(wait_until, lambda: bool(noted.batches))
        later = [asyncio.create_task(noted.submit(text)) for text in "de"]
        await asyncio.sleep(0.05)
        noted.go_on.set()
        return await asyncio.gather(first, *later)

    assert asyncio.run(main()) == [["A", "B", "C"], ["D"], ["E"]]
    assert noted.batches == [["a", "b", "c"], ["d", "e"]]


def test_queues_of_one_place_take_turns_in_their_order_and_others_do_not() -> None:
    one, other, elsewhere = Noted(), Noted(), Noted("there")
    other.go_on.set()
    elsewhere.go_on.set()

    async def main() -> Any:
        first = asyncio.create_task(one.submit("a"))
        await asyncio.to_thread(wait_until, lambda: bool(one.batches))
        second = asyncio.create_task(other.submit("b"))
        assert await elsewhere.submit("c") == ["C"]
        later = asyncio.create_task(one.submit("d"))
        await asyncio.sleep(0.05)
        assert other.batches == []
        one.go_on.set()
        return await asyncio.gather(first, second, later)

    assert asyncio.run(main()) == [["A"], ["B"], ["D"]]


def test_an_error_is_raised_for_its_batch_and_the_next_is_answered() -> None:
    def answer(asked: Sequence[str]) -> list[str]:
        if "bad" in asked:
            raise ZeroDivisionError
        return list(asked)

    queue: BatchQueue[str, str] = BatchQueue(answer, lambda: "here")

    async def main() -> Any:
        failed = await asyncio.gather(
            queue.submit("bad"), queue.submit("good"), return_exceptions=True
        )
        return failed, (await queue.submit("good"))[0]

    failed, after = asyncio.run(main())
    assert [type(error) for error in failed] == [ZeroDivisionError, ZeroDivisionError]
    assert after == "good"


def test_a_request_that_nobody_awaits_any_more_is_not_answered() -> None:
    noted = Noted()

    async def main() -> Any:
        first = asyncio.create_task(noted.submit("a"))
        await asyncio.to_thread(wait_until, lambda: bool(noted.batches))
        second, third = (asyncio.create_task(noted.submit(text)) for text in "bc")
        await asyncio.sleep(0.05)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        noted.go_on.set()
        return await asyncio.gather(first, third)

    assert asyncio.run(main()) == [["A"], ["C"]]
    assert noted.batches == [["a"], ["c"]]


def test_a_thread_without_work_ends_and_the_next_request_starts_another() -> None:
    threads = threading.active_count()
    noted = Noted()
    noted.queue._worker._idle = 0.05
    noted.go_on.set()
    assert asyncio.run(noted.submit("a")) == ["A"]
    wait_until(lambda: threading.active_count() == threads)
    assert asyncio.run(noted.submit("b")) == ["B"]
