"""Program runners. Each runs a program as a function, as one process per episode, or as workers
that poll for episodes."""

from __future__ import annotations

import asyncio
import atexit
import errno
import inspect
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from math import inf
from typing import Any, Protocol

from colearn import registry
from colearn.errors import ConfigError, TaskError, reason_of

from .failures import last_words, raised
from .program_run import ProgramRun

_SOON = 5.0
"""Minimum lifetime of a worker in seconds. A worker that ends earlier is restarted only after a
pause of the same length."""
_STARTS = 3
"""Number of starts after which a worker that always ended before it asked for an episode counts as
unable to start."""
_LEFT_BEHIND = 1.0
"""Number of seconds for which stderr is still read after the process that writes to it has
ended."""
_TAIL = 20_000
"""Number of bytes of a command's stderr that are kept."""


class Endpoints(dict[str, str]):
    """Maps each agent to the base URL for an OpenAI client. `reward` and `end` are URLs for POST
    requests."""

    def __init__(self, base: str, agents: Mapping[str, str]) -> None:
        super().__init__(agents)
        self.reward, self.end = f"{base}/reward", f"{base}/end"

    def __missing__(self, agent: str) -> str:
        raise KeyError(f"no agent {agent!r}; task.agents has {', '.join(self)}")


class Employer(Protocol):
    """The interface through which workers are registered and receive episodes."""

    def hire(self) -> str:
        """Registers a worker; returns the URL at which it asks for episodes."""

    def lose(self, url: str, failure: str) -> bool:
        """Ends the episodes of a worker that has died. Returns whether it had asked for one."""

    def give_up(self, failure: str) -> None:
        """Ends the episodes that wait for a worker, if no worker can start."""

    def offer(self, live: ProgramRun) -> None:
        """Queues an episode for the next worker that asks."""


Play = Callable[[Any, Endpoints], Awaitable[Any] | Any]
"""A function, async or not, that plays an episode."""
Opened = Callable[[Mapping[str, str]], None]
"""A callback that receives the environment variables of an opened episode."""


def variables(item: Any, endpoints: Endpoints) -> dict[str, str]:
    """Returns an episode as environment variables: COLEARN_ITEM (JSON), COLEARN_ENDPOINTS (JSON, by
    agent), COLEARN_URL_AGENT, COLEARN_REWARD_URL, COLEARN_END_URL."""
    return {
        "COLEARN_ITEM": item_text(item),
        "COLEARN_ENDPOINTS": json.dumps(endpoints),
        **{f"COLEARN_URL_{agent.upper()}": url for agent, url in endpoints.items()},
        "COLEARN_REWARD_URL": endpoints.reward,
        "COLEARN_END_URL": endpoints.end,
    }


def item_text(item: Any) -> str:
    """Returns an item as JSON, the form in which it leaves this process.

    Errors: TaskError for an item that is not plain data.
    """
    try:
        json.dumps(item, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise TaskError(
            f"task.items: an item is not plain data ({reason_of(error)}), which a program in "
            "another process needs; return texts, finite numbers, lists and mappings, or set "
            "task.play"
        ) from None
    return json.dumps(item)


class ProgramRunner(ABC):
    """Base class of strategy objects that run the program of each episode."""

    concurrent = False
    """Whether the rollout may start all episodes at once, and pass them their answers at once. If
    false, in lockstep only one program runs at a time; the others wait for answers."""

    def begin(self, server: Employer) -> None:  # noqa: B027 - most start nothing before an episode
        """Called once, when the server listens."""

    @abstractmethod
    def start(self, live: ProgramRun, endpoints: Endpoints) -> None:
        """Starts an episode without waiting for it."""

    def end(self) -> None:  # noqa: B027 - most programs end with their episodes
        """Called once, when the server closes. Stops everything that `begin` started."""


class FunctionProgram(ProgramRunner):
    """Calls a function in one thread per episode, so that a blocking call delays no other episode.
    An async function has a separate event loop in that thread."""

    def __init__(self, play: Callable[[], Play]) -> None:
        self._play = play

    def start(self, live: ProgramRun, endpoints: Endpoints) -> None:
        play = self._play()
        runner = threading.Thread(
            target=self._run, args=(play, live, endpoints), name=f"play-{live.name}", daemon=True
        )
        runner.start()

    def _run(self, play: Play, live: ProgramRun, endpoints: Endpoints) -> None:
        async def main(returned: Awaitable[Any]) -> Any:
            task = asyncio.current_task()
            loop = asyncio.get_running_loop()
            assert task is not None

            def stop() -> None:
                with suppress(RuntimeError):  # the loop has ended
                    loop.call_soon_threadsafe(task.cancel)

            live.stop = stop
            return await returned

        try:
            # a plain function runs without a loop: frameworks start loops in blocking calls
            result = play(live.item, endpoints)
            if inspect.isawaitable(result):
                result = asyncio.run(main(result))
        except BaseException as error:  # noqa: BLE001 - whatever a program does, its episode ends
            live.end(failure=raised(error))
        else:
            live.end(result=result)


def check_play(play: Any) -> None:
    """Errors: ConfigError for a function that cannot play an episode."""
    if inspect.isgeneratorfunction(play) or inspect.isasyncgenfunction(play):
        raise ConfigError("task.play: the function yields; return the reward instead")
    try:
        inspect.signature(play).bind(None, None)
    except TypeError as error:
        raise ConfigError(
            f"task.play: {error}; write play(item, endpoints), with or without async"
        ) from None
    except ValueError:
        return  # a function in C has no signature


class CommandProgram(ProgramRunner):
    """Starts a process per episode and passes it the environment `variables`."""

    def __init__(self, command: Sequence[str]) -> None:
        self.command = tuple(command)

    def start(self, live: ProgramRun, endpoints: Endpoints) -> None:
        process = run_command(self.command, variables(live.item, endpoints))
        live.stop = lambda: kill(process)
        threading.Thread(
            target=self._watch, args=(process, live), name=f"play-{live.name}", daemon=True
        ).start()

    def _watch(self, process: subprocess.Popen[bytes], live: ProgramRun) -> None:
        stderr = _tail_of(process)
        code = process.wait()
        kill(process)
        live.end(failure=None if code == 0 else f"exit code {code}: {stderr}")


class WorkerProgram(ProgramRunner):
    """Starts worker processes that poll for episodes until the run ends, and restarts workers that
    die. A worker that ends at each start before it asks for an episode ends the episodes that wait
    for it. Without a command, the runner prints a URL for workers that are started elsewhere, and
    passes the URLs of each episode to `opened`."""

    concurrent = True

    def __init__(self, command: Sequence[str], workers: int, opened: Opened | None = None) -> None:
        self.command, self.workers, self.opened = tuple(command), workers, opened
        self._server: Employer | None = None
        self._over = threading.Event()
        self._starting = threading.Lock()
        """Lock that is held while a worker is started or removed, so that `end` stops every
        worker."""
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        """The worker processes. The key is the URL at which a worker asks for episodes."""

    def begin(self, server: Employer) -> None:
        self._server = server
        for _ in range(self.workers):
            url = self._hire(server)
            assert url is not None
            threading.Thread(target=self._keep, args=(server, url), daemon=True).start()
        if not self.workers:
            print(f"gateway: programs get their episodes at {server.hire()}", flush=True)

    def start(self, live: ProgramRun, endpoints: Endpoints) -> None:
        assert self._server is not None
        item_text(live.item)  # before a worker asks for it
        self._server.offer(live)
        if self.opened is not None:
            self.opened(variables(live.item, endpoints))

    def end(self) -> None:
        with self._starting:
            self._over.set()
            for process in self._processes.values():
                kill(process)

    def _hire(self, server: Employer) -> str | None:
        """Starts a worker; returns its URL, or None after the end."""
        with self._starting:
            if self._over.is_set():
                return None
            url = server.hire()
            self._processes[url] = run_command(self.command, {"COLEARN_GATEWAY": url})
            return url

    def _keep(self, server: Employer, url: str | None) -> None:
        starts = 0
        while url is not None:
            started = time.monotonic()
            process = self._processes[url]
            stderr = _tail_of(process)
            failure = f"a worker ended with code {process.wait()}: {stderr}"
            kill(process)
            with self._starting:
                if self._over.is_set():
                    return
                del self._processes[url]
            starts = 0 if server.lose(url, failure) else starts + 1
            if starts >= _STARTS:
                server.give_up(failure)
            if starts <= _STARTS:  # the same again says nothing new
                print(f"warning: gateway: {failure}", file=sys.stderr, flush=True)
            if time.monotonic() - started < _SOON:
                self._over.wait(_SOON)
            url = self._hire(server)


def program_runner(
    play: str | None, command: Sequence[str], workers: int, opened: Opened | None
) -> ProgramRunner:
    """Returns the runner that a task's settings select. Errors: ConfigError for a `play` that
    cannot play an episode."""
    if play is not None:
        check_play(registry.own_function(play, "task.play"))
        return FunctionProgram(partial(registry.own_function, play, "task.play"))
    if command and not workers:
        return CommandProgram(command)
    return WorkerProgram(command, workers, opened)


_running: dict[subprocess.Popen[bytes], int] = {}
"""Maps each started process to the id of the process that started it. A forked child must not stop
processes that its parent started."""


def run_command(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Starts a process in a new session.

    Errors: ConfigError for a command that does not exist, or for an environment that is too long.
    """
    try:
        process = subprocess.Popen(
            command,
            env={**os.environ, **_direct(), **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        if error.errno == errno.E2BIG:
            longest = max(environment, key=lambda name: len(environment[name]))
            raise ConfigError(
                f"task.command: {longest} has {len(environment[longest])} characters, too many for "
                "an environment variable; shorten the items, or set task.workers, which get them "
                "by HTTP"
            ) from None
        raise ConfigError(
            f"task.command: cannot run '{command[0]}' ({error.strerror}); give a program's path"
        ) from None
    _running[process] = os.getpid()
    return process


def _direct() -> dict[str, str]:
    """Returns the variables that keep the program's requests to the gateway away from a proxy."""
    names = ("no_proxy", "NO_PROXY")
    before = next((os.environ[name] for name in names if os.environ.get(name)), "")
    if before.strip() == "*":
        return {}
    hosts = ",".join(filter(None, (before, "127.0.0.1")))
    return dict.fromkeys(names, hosts)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kills a process and all processes in its process group."""
    _running.pop(process, None)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


@atexit.register
def _kill_all() -> None:
    for process, parent in list(_running.items()):
        if parent == os.getpid():
            kill(process)


def _tail_of(process: subprocess.Popen[bytes]) -> str:
    """Reads stderr until the pipe is closed, and returns the `last_words` of the text. If the
    process has ended but a child of the process keeps the pipe open, reading stops after
    `_LEFT_BEHIND` seconds."""
    assert process.stderr is not None
    tail, ends = b"", inf
    with selectors.DefaultSelector() as waiting:
        waiting.register(process.stderr, selectors.EVENT_READ)
        while time.monotonic() < ends:
            if waiting.select(_LEFT_BEHIND):
                part = os.read(process.stderr.fileno(), 65536)
                if not part:
                    break
                tail = (tail + part)[-_TAIL:]
            if ends == inf and process.poll() is not None:
                ends = time.monotonic() + _LEFT_BEHIND
    return last_words(tail)
