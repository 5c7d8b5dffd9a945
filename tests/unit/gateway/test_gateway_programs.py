"""Programs are stopped with their episodes and workers with the task: nothing runs on."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from typing import Any

import pytest

from colearn.gateway import programs
from colearn.gateway.live import Live
from colearn.gateway.programs import CommandProgram, Endpoints, FunctionProgram, WorkerProgram

URLS = Endpoints("http://127.0.0.1:9/episodes/0", {"one": "http://127.0.0.1:9"})


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The process groups that were killed; also those of tests before, whose threads still end."""
    seen: list[int] = []
    killpg = os.killpg

    def noted(group: int, sign: int) -> None:
        seen.append(group)
        killpg(group, sign)

    monkeypatch.setattr(programs.os, "killpg", noted)
    return seen


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The processes that were started, in order."""
    seen: list[Any] = []
    run = programs.run_command

    def noted(*given: Any) -> Any:
        seen.append(run(*given))
        return seen[-1]

    monkeypatch.setattr(programs, "run_command", noted)
    return seen


def test_a_closed_episode_kills_its_command(started: list[Any]) -> None:
    live = Live(0, ("one",), "owl")
    CommandProgram(("sleep", "600")).start(live, URLS)
    live.close("enough")
    assert started[0].wait(60) == -signal.SIGKILL


def test_what_a_command_left_running_is_killed_when_it_ends(
    started: list[Any], killed: list[int]
) -> None:
    live = Live(0, ("one",), "owl")
    CommandProgram(("true",)).start(live, URLS)
    live.wait(60.0)
    assert (live.failure, killed.count(started[0].pid)) == (None, 1)


def test_a_closed_episode_cancels_its_function() -> None:
    begun, cancelled = threading.Event(), threading.Event()

    async def play(item: Any, endpoints: Endpoints) -> None:
        begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            cancelled.set()

    live = Live(0, ("one",), "owl")
    FunctionProgram(lambda: play).start(live, URLS)
    assert begun.wait(60)
    live.close("enough")
    assert cancelled.wait(60)


class House:
    """Hires workers under numbered URLs and notes who was lost."""

    def __init__(self) -> None:
        self.hired, self.lost = 0, threading.Event()

    def hire(self) -> str:
        self.hired += 1
        return f"http://127.0.0.1:9/workers/{self.hired}/next"

    def lose(self, url: str, failure: str) -> None:
        self.lost.set()

    def offer(self, live: Live) -> None:
        raise AssertionError("no episode is opened here")


def test_a_worker_that_died_before_the_end_is_neither_replaced_nor_killed_again(
    started: list[Any], killed: list[int], capfd: pytest.CaptureFixture[str]
) -> None:
    """The end comes in the pause before its restart; by then its number may be another's."""
    house, before = House(), set(threading.enumerate())
    program = WorkerProgram(("false",), workers=1)
    program.begin(house)
    keepers = set(threading.enumerate()) - before
    assert house.lost.wait(60)
    program.end()
    for keeper in keepers:
        keeper.join(60)
    assert not any(keeper.is_alive() for keeper in keepers)
    assert house.hired == 1
    assert killed.count(started[0].pid) == 1
