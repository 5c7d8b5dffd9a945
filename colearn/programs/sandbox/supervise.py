"""Supervises the processes of a run from outside: feeds, reads and kills them."""

from __future__ import annotations

import os
import selectors
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ._bundle import GREETING
from .process import Process
from .verdict import ErrorKind

_GOODBYE = 1.0
"""Seconds for the other processes to exit by themselves, with a status that says why."""
_GRACE = 5.0
"""Seconds that the kernel has to end a killed process."""
_TICK = 0.002
"""Seconds between two checks whether a process has ended."""
_LOOK = 0.05
"""Seconds between two checks of the file limit."""
_SIGNALS = {int(number): number.name for number in signal.Signals}
"""Names by signal number; a program may end with a number that has no name."""


@dataclass(slots=True)
class Watched:
    """A process and the output read from it."""

    process: Process
    feed: memoryview
    """Bytes to write to the process's standard input, which is closed afterwards."""
    most_output: int
    """Limit in bytes of standard output and error together, above which it is killed."""
    last_words: bytes = b""
    """Final bytes of a successful process; if they arrive, the exit status is not needed."""
    greeted: bool = False
    """Whether the process has reported that it is ready for input."""
    output: bytearray = field(default_factory=bytearray)
    errors: bytearray = field(default_factory=bytearray)
    ended: str | None = None
    """Why the process was killed: `output`, `files`, `timeout`, or `stopped` after the run ended.
    """

    def kill(self, why: str = "stopped") -> None:
        """Kill the process and all processes inside, without waiting."""
        if self.ended is None and not self.process.ended():
            self.ended = why
        self.process.kill()


def supervise(all_watched: Sequence[Watched], main: Watched, deadline: float) -> None:
    """Feed and read all processes until `main` closes its output; then kill and wait for all.

    deadline: a value of time.monotonic(); processes that are still alive at that time are killed,
    with `ended` set to `timeout`.
    """
    with selectors.DefaultSelector() as selector:
        try:
            for watched in all_watched:
                for stream in watched.process.streams():
                    os.set_blocking(stream.fileno(), False)
                    if stream is not watched.process.stdin:
                        selector.register(stream, selectors.EVENT_READ, watched)
            stdout = main.process.stdout
            _pump(selector, lambda: stdout.closed, deadline, all_watched, _LOOK)
            if not (main.last_words and main.output.endswith(main.last_words)):
                # a process without output may still run; its exit status states how it ended
                _pump(selector, main.process.ended, deadline, all_watched)
                _pump(
                    selector,
                    lambda: all(watched.process.ended() for watched in all_watched),
                    min(deadline, time.monotonic() + _GOODBYE),
                )
        finally:
            late = time.monotonic() >= deadline
            for watched in all_watched:
                watched.kill("timeout" if late else "stopped")
            # a pipe closes when no process inside holds it
            closed_by = time.monotonic() + _GRACE
            _pump(selector, lambda: not selector.get_map(), closed_by, tick=_LOOK)
            for watched in all_watched:
                bury(watched)


def bury(watched: Watched) -> None:
    """Wait for a killed process and close its streams; its output is kept."""
    for stream in watched.process.streams():
        stream.close()
    code = watched.process.bury()
    if watched.ended == "stopped" and code not in (-signal.SIGKILL, 128 + signal.SIGKILL):
        watched.ended = None  # it was exiting on its own


def _pump(
    selector: selectors.BaseSelector,
    finished: Callable[[], bool],
    deadline: float,
    looked_at: Sequence[Watched] = (),
    tick: float = _TICK,
) -> None:
    looked = time.monotonic()
    while not finished():
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            return
        if looked_at and time.monotonic() - looked > _LOOK:
            looked = time.monotonic()
            for watched in looked_at:
                if watched.ended is None and watched.process.too_many_files():
                    watched.kill("files")
        for key, _ in selector.select(min(remaining, tick)):
            stream = key.fileobj
            assert not isinstance(stream, int)
            if key.events == selectors.EVENT_WRITE:
                over = _write(key.data, stream.fileno())
            else:
                over = _read(key.data, stream.fileno(), stream is key.data.process.stderr)
                if not key.data.greeted and key.data.output:
                    key.data.greeted = True
                    key.data.output = key.data.output.removeprefix(GREETING)
                    selector.register(key.data.process.stdin, selectors.EVENT_WRITE, key.data)
            if over:
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
    output = watched.errors if is_error else watched.output
    room = watched.most_output - len(watched.output) - len(watched.errors)
    output += data[: max(room, 0)]
    if len(data) > room:
        watched.kill("output")
    return not data


def lost_by(watched: Watched) -> tuple[ErrorKind, str]:
    """Error kind and message for a process that ended too early."""
    code = watched.process.returncode
    if watched.ended == "output":
        return "output", f"wrote more than {watched.most_output // 1024} KB"
    if watched.ended == "files":
        return "memory", "made more files than limits.files"
    if watched.ended == "timeout":
        return "timeout", "ran out of its wall-clock time"
    if watched.ended == "stopped":
        return "crash", "closed its connection"
    number = code - 128 if code > 128 else -code
    if number in (signal.SIGXCPU, signal.SIGKILL):
        return "timeout", "ran out of its processor time"
    if number in _SIGNALS:
        return "crash", f"ended by signal {_SIGNALS[number]}"
    return "crash", f"its process ended early, with exit status {code}"
