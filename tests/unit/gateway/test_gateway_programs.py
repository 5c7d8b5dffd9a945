"""Programs are stopped with their episodes and workers with the task: nothing runs on."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from colearn.programs.gateway import programs
from colearn.programs.gateway.program_run import ProgramRun
from colearn.programs.gateway.programs import (
    CommandProgram,
    Endpoints,
    FunctionProgram,
    WorkerProgram,
)

URLS = Endpoints("http://127.0.0.1:9/episodes/0", {"one": "http://127.0.0.1:9"})


@pytest.fixture
def end() -> Callable[[WorkerProgram], None]:
    """Ends a program, and waits until its keepers have printed what they print."""
    before = set(threading.enumerate())

    def ended(program: WorkerProgram) -> None:
        program.end()
        for keeper in set(threading.enumerate()) - before:
            keeper.join(600)
            assert not keeper.is_alive()

    return ended


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
    live = ProgramRun(0, ("one",), "owl")
    CommandProgram(("sleep", "600")).start(live, URLS)
    live.close("enough")
    assert started[0].wait(600) == -signal.SIGKILL


def test_what_a_command_left_running_is_killed_when_it_ends(
    started: list[Any], killed: list[int]
) -> None:
    live = ProgramRun(0, ("one",), "owl")
    CommandProgram(("true",)).start(live, URLS)
    live.wait(600.0)
    assert (live.failure, killed.count(started[0].pid)) == (None, 1)


def test_a_closed_episode_cancels_its_function() -> None:
    begun, cancelled = threading.Event(), threading.Event()

    async def play(item: Any, endpoints: Endpoints) -> None:
        begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            cancelled.set()

    live = ProgramRun(0, ("one",), "owl")
    FunctionProgram(lambda: play).start(live, URLS)
    assert begun.wait(600)
    live.close("enough")
    assert cancelled.wait(600)


class FakeServer:
    """Hires workers under numbered URLs and notes who was lost."""

    def __init__(self) -> None:
        self.hired, self.lost = 0, threading.Event()

    def hire(self) -> str:
        self.hired += 1
        return f"http://127.0.0.1:9/workers/{self.hired}/next"

    def lose(self, url: str, failure: str) -> bool:
        self.lost.set()
        return True

    def give_up(self, failure: str) -> None:
        raise AssertionError("each worker has asked for an episode")

    def offer(self, live: ProgramRun) -> None:
        raise AssertionError("no episode is opened here")


def test_a_worker_that_died_before_the_end_is_neither_replaced_nor_killed_again(
    started: list[Any],
    killed: list[int],
    end: Callable[[WorkerProgram], None],
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The end comes in the pause before its restart; by then its number may be another's."""
    server, program = FakeServer(), WorkerProgram(("false",), workers=1)
    program.begin(server)
    assert server.lost.wait(600)
    end(program)
    assert server.hired == 1
    assert killed.count(started[0].pid) == 1


class Slow(FakeServer):
    """Hires the worker of that number once it is let go."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
        self.entered, self.go = threading.Event(), threading.Event()

    def hire(self) -> str:
        url = super().hire()
        if self.hired == self.number:
            self.entered.set()
            assert self.go.wait(600)
        return url


def test_a_worker_that_starts_while_the_end_comes_is_stopped_by_it(started: list[Any]) -> None:
    server, program = Slow(2), WorkerProgram(("sleep", "600"), workers=2)
    begins = threading.Thread(target=program.begin, args=(server,))
    begins.start()
    assert server.entered.wait(600)
    ends = threading.Thread(target=program.end)
    ends.start()
    ends.join(0.3)
    server.go.set()
    ends.join(600)
    begins.join(600)
    assert not ends.is_alive() and len(started) == 2
    assert [one.wait(600) for one in started] == [-signal.SIGKILL] * 2


class Pausing(threading.Event):
    """Stands still where a keeper has seen that it is not yet set."""

    def __init__(self) -> None:
        super().__init__()
        self.seen, self.go = threading.Event(), threading.Event()

    def is_set(self) -> bool:
        found = super().is_set()
        if not found and threading.current_thread() is not threading.main_thread():
            self.seen.set()
            assert self.go.wait(600)
        return found


def test_the_end_stops_the_others_while_a_worker_that_died_is_struck_off(
    end: Callable[[WorkerProgram], None],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """It goes through a dictionary from which the dead worker's keeper is about to take it."""
    first = f"test -e {tmp_path}/one && exec sleep 600; touch {tmp_path}/one; exit 1"
    program, server = WorkerProgram(("sh", "-c", first), workers=1), FakeServer()
    program._over = over = Pausing()
    program._processes["other"] = other = programs.run_command(("sleep", "600"), {})
    program.begin(server)
    assert over.seen.wait(600)
    kill = programs.kill

    def lets_go(process: Any) -> None:
        over.go.set()
        server.lost.wait(2)
        kill(process)

    monkeypatch.setattr(programs, "kill", lets_go)
    threading.Timer(0.3, over.go.set).start()
    end(program)
    assert other.wait(600) == -signal.SIGKILL
    assert server.hired == 1


def test_a_worker_that_died_costs_its_episodes_and_another_one_is_started(
    end: Callable[[WorkerProgram], None],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(programs, "_SOON", 0.1)
    told: list[tuple[str, str]] = []

    class Noting(FakeServer):
        def lose(self, url: str, failure: str) -> bool:
            told.append((url, failure))
            return super().lose(url, failure)

    server = Noting()
    program = WorkerProgram(("sh", "-c", "echo no more >&2; exit 3"), workers=1)
    program.begin(server)
    while server.hired < 3:
        time.sleep(0.01)
    end(program)
    failure = "a worker ended with code 3: no more"
    urls = [f"http://127.0.0.1:9/workers/{number}/next" for number in (1, 2)]
    assert told[:2] == [(url, failure) for url in urls]
    assert capfd.readouterr().err.splitlines()[0] == f"warning: gateway: {failure}"
    assert not program._processes.keys() & {*urls}


@pytest.mark.parametrize(("soon", "pauses"), [(600.0, [600.0]), (0.0, [])])
def test_only_a_worker_that_ended_soon_is_started_again_after_a_pause(
    end: Callable[[WorkerProgram], None],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    soon: float,
    pauses: list[float],
) -> None:
    monkeypatch.setattr(programs, "_SOON", soon)
    waited: list[float | None] = []

    class Noting(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waited.append(timeout)
            return self.is_set()

    server, program = FakeServer(), WorkerProgram(("false",), workers=1)
    program._over = Noting()
    program.begin(server)
    while server.hired < 2:
        time.sleep(0.01)
    end(program)
    assert waited[:1] == pauses


def test_a_worker_that_cannot_start_is_given_up_after_three_starts_and_told_three_times(
    end: Callable[[WorkerProgram], None],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(programs, "_SOON", 0.01)
    given_up: list[tuple[int, str]] = []

    class NeverAsked(FakeServer):
        def lose(self, url: str, failure: str) -> bool:
            return False

        def give_up(self, failure: str) -> None:
            given_up.append((self.hired, failure))

    server = NeverAsked()
    program = WorkerProgram(("sh", "-c", "echo no module >&2; exit 1"), workers=1)
    program.begin(server)
    while server.hired < 6:
        time.sleep(0.01)
    end(program)
    failure = "a worker ended with code 1: no module"
    assert given_up[:3] == [(3, failure), (4, failure), (5, failure)]
    assert capfd.readouterr().err.splitlines() == [f"warning: gateway: {failure}"] * 3


def test_the_url_of_an_agent_that_there_is_not_is_refused_with_the_agents_that_there_are() -> None:
    with pytest.raises(KeyError, match=r"no agent 'tester'; task\.agents has one"):
        URLS["tester"]
