"""Defers Ctrl-C while a library does what an exception from a signal handler would break."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from colearn.text.notes import PREFIX, speaks


@contextmanager
def deferred_interrupt(what: str, seconds: float) -> Iterator[None]:
    """Context that defers SIGINT to the end of its block, which may have ended with an error; the
    handler of before is then called, which raises KeyboardInterrupt unless a program has set
    another. A second SIGINT is not deferred, and neither is the first after `seconds`. `what`
    describes the block to the user who waits.

    Only the main thread handles signals: in another thread the context changes nothing.
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
            told = f"SIGINT: ends after {what}, within {seconds:g} s; a second signal ends at once"
            os.write(2, f"{PREFIX}{told}\n".encode())

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if timer is not None:
            timer.cancel()
        if deferred:
            before(signal.SIGINT, None)
