"""Feeding, reading and ending the processes of a run, from outside."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO

from ._bundle import GREETING
from .start import Started
from .verdict import ErrorKind

_GOODBYE = 0.2
"""Seconds for a process to end by itself, so that its exit status tells why."""
_GRACE = 5.0
"""Seconds in which the kernel ends what was killed."""
_BURIAL = 60.0
"""Seconds after which a killed process that still is there is an error."""


@dataclass(slots=True)
class Watched:
    """One process and what has been read from it."""

    started: Started
    feed: bytes
    """For its standard input, which is closed after it."""
    most_output: int
    """Bytes of its standard output and error together; beyond them it is killed."""
    greeted: bool = False
    """Whether it has said that it can be fed."""
    output: bytearray = field(default_factory=bytearray)
    errors: bytearray = field(default_factory=bytearray)
    ended: str | None = None
    """Why it was killed: `output`, `timeout`, or `stopped`, after the run was over."""

    @property
    def process(self) -> subprocess.Popen[bytes]:
        return self.started.process

    def kill(self, why: str = "stopped") -> None:
        """End it and its group; it is not waited for, so its number stays its own."""
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        if self.ended is None and os.waitid(os.P_PID, self.process.pid, options) is None:
            self.ended = why
        # from the inside out, so that the outermost still waits for the one below it: where this
        # is a container's first process nobody else would
        children = [] if self.started.folder is not None else _children(self.process.pid)
        with contextlib.suppress(ProcessLookupError):
            for child in children:
                os.kill(child, signal.SIGKILL)
            if not children:
                os.killpg(self.process.pid, signal.SIGKILL)


def supervise(all_watched: Sequence[Watched], main: Watched, deadline: float) -> None:
    """Feed and read all until `main` has closed its output; then end all and wait for them.

    deadline: of time.monotonic(); what still runs then is killed, with `ended` set to `timeout`.
    """
    with selectors.DefaultSelector() as selector:
        for watched in all_watched:
            for stream in _streams(watched):
                os.set_blocking(stream.fileno(), False)
            for readable in (watched.process.stdout, watched.process.stderr):
                if readable is not None:
                    selector.register(readable, selectors.EVENT_READ, watched)
        try:
            _pump(selector, main.process.stdout, deadline)
            if time.monotonic() < deadline:
                _pump(selector, None, time.monotonic() + _GOODBYE)
        finally:
            late = time.monotonic() >= deadline
            for watched in all_watched:
                watched.kill("timeout" if late else "stopped")
            # a pipe ends when nobody inside holds it any more
            _pump(selector, None, time.monotonic() + _GRACE)
            for watched in all_watched:
                _bury(watched)


def _bury(watched: Watched) -> None:
    for stream in _streams(watched):
        stream.close()
    try:
        code = watched.process.wait(_GRACE)
    except subprocess.TimeoutExpired:
        watched.process.kill()
        code = watched.process.wait(_BURIAL)
    if watched.ended == "stopped" and code not in (-signal.SIGKILL, 128 + signal.SIGKILL):
        watched.ended = None  # it was ending by itself
    if watched.started.folder is not None:
        watched.started.folder.cleanup()


def _pump(selector: selectors.BaseSelector, until: IO[bytes] | None, deadline: float) -> None:
    while selector.get_map() and (until is None or not until.closed):
        left = deadline - time.monotonic()
        if left <= 0:
            return
        for key, _ in selector.select(left):
            stream = key.fileobj
            assert not isinstance(stream, int)
            if key.events == selectors.EVENT_WRITE:
                done = _write(key.data, stream.fileno())
            else:
                done = _read(key.data, stream.fileno(), stream is key.data.process.stderr)
                if not key.data.greeted and key.data.output:
                    key.data.greeted = True
                    key.data.output = key.data.output.removeprefix(GREETING)
                    selector.register(key.data.process.stdin, selectors.EVENT_WRITE, key.data)
            if done:
                selector.unregister(stream)
                stream.close()  # type: ignore[attr-defined]


def _write(watched: Watched, descriptor: int) -> bool:
    try:
        written = os.write(descriptor, watched.feed[: 1 << 16])
    except BrokenPipeError:
        return True
    watched.feed = watched.feed[written:]
    return not watched.feed


def _read(watched: Watched, descriptor: int, is_error: bool) -> bool:
    data = os.read(descriptor, 1 << 16)
    kept = watched.errors if is_error else watched.output
    room = watched.most_output - len(watched.output) - len(watched.errors)
    kept += data[: max(room, 0)]
    if len(data) > room:
        watched.kill("output")
    return not data


def _children(pid: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(word) for word in file.read().split()]
    except (FileNotFoundError, ProcessLookupError):  # it ended, or the kernel keeps no such list
        return []


def _streams(watched: Watched) -> Iterator[IO[bytes]]:
    process = watched.process
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            yield stream


def lost_by(watched: Watched) -> tuple[ErrorKind, str]:
    """The kind of error and a line for a process that ended before it should."""
    code = watched.process.returncode
    if watched.ended == "output":
        return "output", f"wrote more than {watched.most_output // 1024} KB"
    if watched.ended == "timeout":
        return "timeout", "ran out of its wall-clock time"
    if watched.ended == "stopped":
        return "crash", "broke off its connection"
    number = code - 128 if code > 128 else -code
    if number in (signal.SIGXCPU, signal.SIGKILL):
        return "timeout", "ran out of its processor time"
    if 0 < number < signal.NSIG:
        return "crash", f"ended by signal {signal.Signals(number).name}"
    return "crash", f"its process ended early, with exit status {code}"
