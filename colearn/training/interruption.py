"""Handles Ctrl-C and SIGTERM: a run stops only at a point where a checkpoint is consistent."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

from colearn.text.notes import PREFIX, speaks

from .processes import Processes

SIGNALS = (signal.SIGINT, signal.SIGTERM)

_DEFERRED = (
    "the run saves its state and ends once the models are consistent; a second signal ends it at "
    "once, and it continues from its last checkpoint"
)


class Interrupted(KeyboardInterrupt):
    """Raised when a signal has stopped the run; the run's checkpoint has then been written."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


class Interruption:
    """Signal handler that raises `Interrupted` immediately or, inside a `held` block, at the end of
    the block. `held` blocks enclose code that changes the run's state. A second signal always
    raises KeyboardInterrupt immediately. In a run with several processes, all processes stop
    together after an iteration."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self._held = processes.count > 1
        self._received: int | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interruption:
        self._received = None
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._handle) for number in SIGNALS}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Defers `Interrupted` to the end of the block."""
        before, self._held = self._held, True
        try:
            yield
        finally:
            self._held = before
        self.check()

    def check(self) -> None:
        """Raise a deferred `Interrupted`."""
        if self._processes.count > 1:
            received = self._processes.any(self._received is not None)
            if received:
                raise Interrupted(self._received or signal.SIGTERM)
        elif self._received is not None and not self._held:
            raise Interrupted(self._received)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._received is not None:
            raise KeyboardInterrupt
        self._received = number
        if not self._held:
            raise Interrupted(number)
        if speaks():
            # print is not reentrant, and the signal may have interrupted one
            os.write(2, f"{PREFIX}{signal.Signals(number).name}: {_DEFERRED}\n".encode())


def end_with(parent: int, *, every: float = 0.5) -> None:
    """Send SIGTERM to this process once its parent process has ended."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(every)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
