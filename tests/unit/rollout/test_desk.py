"""Request queues of tables in the free order: turns, arrivals during a turn, and errors."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from colearn.contract import Arrivals, Ask, Spoken, Table
from colearn.rollout.desk import Desk, Place
from colearn.types import Action

Turn = Callable[[Arrivals[Ask, list[Spoken]]], None]


class Scripted(Table):
    """A table whose turns are functions."""

    def __init__(self, *turns: Turn) -> None:
        self.turns = list(turns)

    def speak(self, asks: Sequence[Ask], *, greedy: bool = False) -> list[list[Spoken]]:
        raise AssertionError("lockstep only")

    def speak_continuously(
        self, asks: Arrivals[Ask, list[Spoken]], *, greedy: bool = False
    ) -> None:
        self.turns.pop(0)(asks)


def said(ask: Any) -> list[Spoken]:
    return [Spoken(Action(f"{ask} heard", (1, 2)))]


def held(tables: dict[str, Table], say: Callable[[dict[str, Desk]], Any]) -> Any:
    """What `say` returns, given the desks of tables that share a place."""

    async def main() -> Any:
        with ThreadPoolExecutor(4) as threads:
            place = Place()
            return await say({n: Desk(t, place, threads, greedy=False) for n, t in tables.items()})

    return asyncio.run(main())


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(4000):
        if condition():
            return
        threading.Event().wait(0.005)
    raise AssertionError("waited for 20 seconds")


def test_a_request_that_arrives_while_a_table_answers_joins_the_turn() -> None:
    """The later one is answered first, and both in one turn."""
    first_taken = threading.Event()

    def turn(asks: Arrivals[Any, Any]) -> None:
        (first,) = asks.take()
        first_taken.set()
        wait_until(lambda: asks.waiting == 1)
        (second,) = asks.take()
        asks.answer(1, said(second))
        asks.answer(0, said(first))

    async def say(desks: dict[str, Desk]) -> Any:
        async def later() -> Any:
            await asyncio.to_thread(first_taken.wait, 20)
            return await desks["one"].say("second")  # type: ignore[arg-type]

        first = asyncio.create_task(desks["one"].say("first"))  # type: ignore[arg-type]
        return [await later(), await first]

    (second, early), (first, late) = held({"one": Scripted(turn)}, say)
    assert [second, first] == [said("second"), said("first")]
    assert 0.0 < early < late


def test_a_table_ends_its_turn_where_another_waits_for_the_place() -> None:
    """Requests of the first table that arrive meanwhile are answered in its next turn."""
    order: list[str] = []
    taken = threading.Event()

    def endless(asks: Arrivals[Any, Any]) -> None:
        (one,) = asks.take()
        taken.set()
        wait_until(lambda: bool(asks.waiting))
        wait_until(lambda: not asks.waiting)
        assert asks.take() == []
        order.append(one)
        asks.answer(0, said(one))

    def short(asks: Arrivals[Any, Any]) -> None:
        (one,) = asks.take()
        order.append(one)
        asks.answer(0, said(one))

    async def say(desks: dict[str, Desk]) -> Any:
        first = asyncio.create_task(desks["one"].say("a"))  # type: ignore[arg-type]
        await asyncio.to_thread(taken.wait, 20)
        later = asyncio.create_task(desks["one"].say("b"))  # type: ignore[arg-type]
        await asyncio.sleep(0.1)
        other = asyncio.create_task(desks["two"].say("c"))  # type: ignore[arg-type]
        return await asyncio.gather(first, later, other)

    answers = held({"one": Scripted(endless, short), "two": Scripted(short)}, say)
    assert [answer for answer, _ in answers] == [said("a"), said("b"), said("c")]
    assert order == ["a", "c", "b"]


def test_an_error_of_a_table_is_raised_for_all_of_its_requests() -> None:
    taken = threading.Event()

    def breaks(asks: Arrivals[Any, Any]) -> None:
        asks.take()
        taken.set()
        wait_until(lambda: asks.waiting == 1)
        raise ZeroDivisionError

    async def say(desks: dict[str, Desk]) -> Any:
        first = asyncio.create_task(desks["one"].say("first"))  # type: ignore[arg-type]
        await asyncio.to_thread(taken.wait, 20)
        second = asyncio.create_task(desks["one"].say("second"))  # type: ignore[arg-type]
        return await asyncio.gather(first, second, return_exceptions=True)

    errors = held({"one": Scripted(breaks)}, say)
    assert [type(error) for error in errors] == [ZeroDivisionError, ZeroDivisionError]


def test_a_request_that_nobody_awaits_any_more_is_not_taken() -> None:
    busy, go_on = threading.Event(), threading.Event()

    def turn(asks: Arrivals[Any, Any]) -> None:
        (first,) = asks.take()
        busy.set()
        assert go_on.wait(20)
        (third,) = asks.take()
        asks.answer(0, said(first))
        asks.answer(1, said(third))

    async def say(desks: dict[str, Desk]) -> Any:
        first = asyncio.create_task(desks["one"].say("first"))  # type: ignore[arg-type]
        await asyncio.to_thread(busy.wait, 20)
        second = asyncio.create_task(desks["one"].say("second"))  # type: ignore[arg-type]
        third = asyncio.create_task(desks["one"].say("third"))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        go_on.set()
        return [await first, await third]

    answers = held({"one": Scripted(turn)}, say)
    assert [answer for answer, _ in answers] == [said("first"), said("third")]
