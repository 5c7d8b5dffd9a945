"""Processes in which a task's steps run beside the trainer's."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor


@contextlib.contextmanager
def step_workers(count: int) -> Iterator[Executor | None]:
    """A pool of `count` processes; None for 0, where steps run in this process."""
    if not count:
        yield None
        return
    # Ctrl-C reaches the workers, too, and is this process's to answer
    quiet = (signal.SIGINT, signal.SIG_IGN)
    with ProcessPoolExecutor(count, initializer=signal.signal, initargs=quiet) as pool:
        yield pool
