"""Defers Ctrl-C during a library call that an exception from a signal handler would break."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from colearn.text.notes import PREFIX, speaks


@contextmanager
def deferred_interrupt(activity: str, seconds: float) -> Iterator[None]:
    """Context that defers SIGINT to the end of its block, even if the block ends with an error. The
    previous handler is then called; Python's own handler raises KeyboardInterrupt. A second SIGINT
    is not deferred, and the first SIGINT is deferred by at most `seconds`. `activity` describes the
    block in the note for the user.

    Only the main thread handles signals, so the context has no effect in other threads.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    timer: threading.Timer | None = None
    deferred = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal timer, deferred
        if timer is not None:
            deferred = False
            before(number, frame)
            return
        deferred = True
        timer = threading.Timer(seconds, os.kill, (os.getpid(), number))
        timer.daemon = True
        timer.start()
        if speaks():
            # print is not reentrant, and the signal may have interrupted one
            line = (
                f"SIGINT: ends after {activity}, within {seconds:g} s; a second signal ends at once"
            )
            os.write(2, f"{PREFIX}{line}\n".encode())

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if timer is not None:
            timer.cancel()
        if deferred:
            before(signal.SIGINT, None)
