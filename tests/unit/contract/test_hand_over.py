"""Results that one thread hands to coroutines that await them."""

from __future__ import annotations

import asyncio
from threading import Thread
from typing import Any

from colearn.contract.worker import hand_over


def from_a_thread(*ended: Any) -> None:
    thread = Thread(target=hand_over, args=(ended,))
    thread.start()
    thread.join()


def test_results_and_errors_reach_their_coroutines_with_one_wake_up() -> None:
    async def both() -> tuple[list[Any], int]:
        loop = asyncio.get_running_loop()
        one, two = loop.create_future(), loop.create_future()
        wakes, wake = [], loop.call_soon_threadsafe

        def counted(*call: Any, **named: Any) -> Any:
            wakes.append(call)
            return wake(*call, **named)

        loop.call_soon_threadsafe = counted  # type: ignore[method-assign]
        from_a_thread((one, "a", None), (two, None, KeyError("b")))
        return await asyncio.gather(one, two, return_exceptions=True), len(wakes)

    (result, error), wakes = asyncio.run(both())
    assert (result, repr(error), wakes) == ("a", "KeyError('b')", 1)


def test_a_cancelled_future_takes_no_result_and_its_neighbour_does() -> None:
    async def neighbour() -> Any:
        loop = asyncio.get_running_loop()
        cancelled, other = loop.create_future(), loop.create_future()
        cancelled.cancel()
        from_a_thread((cancelled, "late", None), (other, "in time", None))
        return await asyncio.wait_for(other, 600)

    assert asyncio.run(neighbour()) == "in time"


def test_nothing_happens_for_a_loop_that_has_closed() -> None:
    async def pending() -> asyncio.Future[Any]:
        return asyncio.get_running_loop().create_future()

    future = asyncio.run(pending())
    from_a_thread((future, "late", None))
    assert not future.done()
