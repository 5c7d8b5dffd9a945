"""Detection of functions that mostly wait, for example for a judge or a server."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

IDLE = 0.05
"""Minimum idle time in seconds of a function that counts as waiting."""


def timed(work: Callable[..., Any], arguments: Sequence[Any]) -> tuple[Any, float, float]:
    """Return the outcome of the work, then this thread's idle time and the total time in
    seconds."""
    began, worked = time.perf_counter(), time.thread_time()
    outcome = work(*arguments)
    seconds = time.perf_counter() - began
    return outcome, seconds - (time.thread_time() - worked), seconds


def waits(idle: float, seconds: float) -> bool:
    """Whether a function counts as waiting: it was idle for longer than `IDLE`, and for at least
    half of its duration."""
    return idle > max(IDLE, seconds / 2)


def needs_main_thread(error: BaseException | None) -> bool:
    """Whether an error means that `signal` refused a call outside the main thread."""
    while error is not None:
        if isinstance(error, ValueError) and "main thread" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False
