"""Ctrl-C and SIGTERM handling: a run stops at a point where a checkpoint is consistent."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

from .processes import Processes

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """A signal stopped the run; its checkpoint has been written."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


class Interruption:
    """Raises `Interrupted` immediately, or at the end of a `held` block, in which the state
    changes. A second signal raises KeyboardInterrupt anywhere. Several processes stop together,
    after an iteration."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self._held = processes.count > 1
        self._told: int | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interruption:
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
            told = self._processes.any(self._told is not None)
            if told:
                raise Interrupted(self._told or signal.SIGTERM)
        elif self._told is not None and not self._held:
            raise Interrupted(self._told)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._told is not None:
            raise KeyboardInterrupt
        self._told = number
        if not self._held:
            raise Interrupted(number)


def end_with(parent: int, *, every: float = 0.5) -> None:
    """Send SIGTERM to this process once its parent process is gone."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(every)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
