"""Who plays an episode: an async function, a command for each, or workers that ask for the next."""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import signal
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from colearn.errors import ConfigError

from .live import Live

_SOON = 5.0
"""Seconds: a worker that lives no longer is started again after as many."""
_TAIL = 2000
"""Bytes of what a command wrote to stderr that are kept."""


class Endpoints(dict[str, str]):
    """By agent, the base URL of an OpenAI client; `reward` and `end` are URLs for POST."""

    def __init__(self, base: str, agents: Mapping[str, str]) -> None:
        super().__init__(agents)
        self.reward, self.end = f"{base}/reward", f"{base}/end"


class Employer(Protocol):
    """Where workers get their episodes."""

    def hire(self) -> str:
        """The URL at which a new worker asks for its next episode."""

    def lose(self, url: str, failure: str) -> None:
        """A worker has died."""

    def offer(self, live: Live) -> None:
        """Let the next worker that asks play it."""


Play = Callable[[Any, Endpoints], Awaitable[Any]]


class Program(ABC):
    """A strategy: how episodes are played."""

    def begin(self, house: Employer) -> None:  # noqa: B027 - most start nothing before an episode
        """The server listens."""

    @abstractmethod
    def start(self, live: Live, endpoints: Endpoints) -> None:
        """Begin to play an episode, and return at once."""


class FunctionProgram(Program):
    """An async function, in a thread and an event loop of its own, so that one that blocks holds
    up no other."""

    def __init__(self, play: Callable[[], Play]) -> None:
        self._play = play

    def start(self, live: Live, endpoints: Endpoints) -> None:
        play = self._play()
        runner = threading.Thread(
            target=self._run, args=(play, live, endpoints), name=f"play-{live.name}", daemon=True
        )
        runner.start()

    def _run(self, play: Play, live: Live, endpoints: Endpoints) -> None:
        async def main() -> Any:
            task = asyncio.current_task()
            loop = asyncio.get_running_loop()
            assert task is not None

            def stop() -> None:
                with suppress(RuntimeError):  # the loop has ended
                    loop.call_soon_threadsafe(task.cancel)

            live.stop = stop
            return await play(live.item, endpoints)

        try:
            result = asyncio.run(main())
        except BaseException as error:  # noqa: BLE001 - whatever a program does, its episode ends
            live.end(failure=f"{type(error).__name__}: {_line(error)}")
        else:
            live.end(result=result)


class CommandProgram(Program):
    """A process for each episode. It is told by COLEARN_ITEM (JSON), COLEARN_ENDPOINTS (JSON, by
    agent), COLEARN_URL_AGENT, COLEARN_REWARD_URL and COLEARN_END_URL."""

    def __init__(self, command: Sequence[str]) -> None:
        self.command = tuple(command)

    def start(self, live: Live, endpoints: Endpoints) -> None:
        told = {
            "COLEARN_ITEM": json.dumps(live.item),
            "COLEARN_ENDPOINTS": json.dumps(endpoints),
            "COLEARN_REWARD_URL": endpoints.reward,
            "COLEARN_END_URL": endpoints.end,
            **{f"COLEARN_URL_{agent.upper()}": url for agent, url in endpoints.items()},
        }
        process = run_command(self.command, told)
        live.stop = lambda: kill(process)
        threading.Thread(
            target=self._watch, args=(process, live), name=f"play-{live.name}", daemon=True
        ).start()

    def _watch(self, process: subprocess.Popen[bytes], live: Live) -> None:
        said = _tail_of(process)
        code = process.wait()
        kill(process)
        live.end(failure=None if code == 0 else f"exit code {code}: {said}")


class WorkerProgram(Program):
    """Processes that live as long as the run and ask for one episode after the other; without a
    command, somebody else's. One that dies is started again."""

    def __init__(self, command: Sequence[str], workers: int) -> None:
        self.command, self.workers = tuple(command), workers
        self._house: Employer | None = None

    def begin(self, house: Employer) -> None:
        self._house = house
        for _ in range(self.workers):
            url = house.hire()
            process = run_command(self.command, {"COLEARN_GATEWAY": url})
            threading.Thread(target=self._keep, args=(house, url, process), daemon=True).start()
        if not self.workers:
            print(f"gateway: programs get their episodes at {house.hire()}", flush=True)

    def start(self, live: Live, endpoints: Endpoints) -> None:
        assert self._house is not None
        self._house.offer(live)

    def _keep(self, house: Employer, url: str, process: subprocess.Popen[bytes]) -> None:
        while True:
            started = time.monotonic()
            said = _tail_of(process)
            failure = f"a worker ended with code {process.wait()}: {said}"
            kill(process)
            house.lose(url, failure)
            print(f"warning: gateway: {failure}", file=sys.stderr, flush=True)
            if time.monotonic() - started < _SOON:
                time.sleep(_SOON)
            url = house.hire()
            process = run_command(self.command, {"COLEARN_GATEWAY": url})


_running: dict[subprocess.Popen[bytes], int] = {}
"""With the process that started each: a forked one leaves them alone."""


def run_command(command: Sequence[str], told: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Errors: ConfigError where there is no such command."""
    try:
        process = subprocess.Popen(
            command,
            env={**os.environ, **told},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise ConfigError(
            f"task.command: cannot run '{command[0]}' ({error.strerror}); give a program's path"
        ) from None
    _running[process] = os.getpid()
    return process


def kill(process: subprocess.Popen[bytes]) -> None:
    """The process and all that it started."""
    _running.pop(process, None)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


@atexit.register
def _kill_all() -> None:
    for process, parent in list(_running.items()):
        if parent == os.getpid():
            kill(process)


def _tail_of(process: subprocess.Popen[bytes]) -> str:
    """The end of what it writes to stderr, in one line; returns when it is closed."""
    assert process.stderr is not None
    kept = b""
    while part := process.stderr.read1(65536):  # type: ignore[attr-defined]
        kept = (kept + part)[-_TAIL:]
    lines = kept.decode(errors="replace").split("\n")
    return next(
        (" ".join(line.split()) for line in reversed(lines) if line.strip()), "said nothing"
    )


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300].encode(errors="replace").decode()
