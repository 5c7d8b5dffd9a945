"""Client of the fork server, which starts runs as forks of a process with all imports made."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from colearn.errors import ColearnError


class Fork:
    """The process of a forked run, with the methods `poll` and `wait` of `subprocess.Popen`."""

    def __init__(self, forks: Forks, pid: int) -> None:
        self._forks, self.pid = forks, pid

    def poll(self) -> int | None:
        """The exit code, or the negated number of the signal that killed the run; None while the
        run is active.

        Errors: ColearnError if the fork server has ended.
        """
        return self._forks.code(self.pid)

    def wait(self, timeout: float | None = None) -> int:
        """Errors: subprocess.TimeoutExpired after `timeout` seconds."""
        start = time.monotonic()
        while (code := self.poll()) is None:
            if timeout is not None and time.monotonic() - start >= timeout:
                raise subprocess.TimeoutExpired(f"run {self.pid}", timeout)
            time.sleep(0.05)
        return code


class Forks:
    """Context manager that starts `colearn` processes, each in a separate POSIX session. All these
    processes end on exit."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self._server: subprocess.Popen[bytes] | None = None
        self._buffered = b""
        self._used = False
        """Whether a run was requested."""
        self._started: list[int] = []
        self._codes: dict[int, int] = {}

    def __enter__(self) -> Forks:
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the server; unfinished runs stop as if their parent had died. A server that has
        started no run may still be importing, so it is killed."""
        if self._server is not None:
            if not self._used:
                self._server.kill()
            for pipe in (self._server.stdin, self._server.stdout):
                assert pipe is not None
                pipe.close()
            self._server.wait()

    def begin(self) -> None:
        """Start the server, which begins to import the modules that runs need."""
        if self._server is None:
            self._server = subprocess.Popen(
                # -P: a file `json.py` in the current folder must not shadow Python's
                [sys.executable, "-P", "-m", "colearn.runs.comparison.fork_server"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                env=self._environment,
                start_new_session=True,  # Ctrl-C is for us; we tell the runs
            )

    def start(
        self,
        arguments: Sequence[str],
        log: Path,
        *,
        append: bool,
        environment: Mapping[str, str] | None = None,
    ) -> Fork:
        """Start `colearn ARGUMENTS` and write the output to the file `log`. `environment`:
        environment variables in addition to those of the server.

        Errors: ColearnError if no process can be started.
        """
        self.begin()
        assert self._server is not None
        self._used = True
        request = {
            "arguments": list(arguments),
            "log": str(log),
            "append": append,
            "environment": dict(environment or {}),
        }
        pipe = self._server.stdin
        assert pipe is not None
        try:
            pipe.write(json.dumps(request).encode() + b"\n")
        except BrokenPipeError:
            raise self._gone() from None
        while not self._started:
            self._listen(None)
        return Fork(self, self._started.pop())

    def code(self, pid: int) -> int | None:
        """The exit code of a process that `start` started; None while the process runs."""
        if pid not in self._codes:
            self._listen(0.0)
        return self._codes.get(pid)

    def _listen(self, seconds: float | None) -> None:
        """Read the server's answers. Wait up to `seconds` for the first answer, or without a limit
        if `seconds` is None."""
        pipe = self._pipe()
        while select.select([pipe], [], [], seconds)[0]:
            data = os.read(pipe.fileno(), 65536)
            if not data:
                raise self._gone()
            *lines, self._buffered = (self._buffered + data).split(b"\n")
            for line in lines:
                message = json.loads(line)
                if "started" in message:
                    self._started.append(message["started"])
                    self._codes.pop(message["started"], None)  # of an earlier run with this ID
                else:
                    self._codes[message["ended"]] = message["code"]
            seconds = 0.0

    def _pipe(self) -> IO[bytes]:
        assert self._server is not None and self._server.stdout is not None
        return self._server.stdout

    def _gone(self) -> ColearnError:
        assert self._server is not None
        return ColearnError(
            f"the process that starts the runs has ended (exit code {self._server.wait()}); "
            "run the same command again: finished runs are kept"
        )
