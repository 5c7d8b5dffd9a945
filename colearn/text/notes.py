"""Notes to the user on stderr, printed only by rank 0."""

from __future__ import annotations

import os
import sys
import time
from functools import lru_cache

from .printable import printable

PREFIX = "note: "


EVERY = 5.0
"""Minimum number of seconds between the notes of a `TimeLeft`."""
ENOUGH = 1.0
"""Minimum number of seconds from which a `TimeLeft` infers a rate."""


class TimeLeft:
    """Reports the finished fraction of a piece of work and the remaining time, from the rate since
    the first report: the time before it also contains the work's start."""

    def __init__(self, activity: str) -> None:
        self._what = activity
        self._noted = time.monotonic()
        self._first: tuple[float, float] | None = None

    def report(self, fraction: float) -> None:
        """Report the finished fraction, at most every `EVERY` seconds."""
        now = time.monotonic()
        began, before = self._first = self._first or (now, fraction)
        if now - self._noted < EVERY or now - began < ENOUGH or not before < fraction < 1:
            return
        self._noted = now
        remaining = (now - began) * (1 - fraction) / (fraction - before)
        note(f"{self._what}: {fraction:.0%}, about {duration(remaining)} left")


def duration(seconds: float) -> str:
    """Returns seconds as a short text in seconds, minutes or hours."""
    minutes = round(seconds / 60)
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 100 else f"{seconds / 3600:.1f} h"


def speaks() -> bool:
    """Whether this process may print. Launchers such as torchrun set the environment variable RANK
    to the number of the process."""
    return os.environ.get("RANK", "0") == "0"


def note(text: str) -> None:
    """Print a note on stderr."""
    if speaks():
        print(PREFIX + printable(text), file=sys.stderr, flush=True)


@lru_cache(maxsize=1024)
def note_once(text: str) -> None:
    """Print a note on stderr, but only once per process."""
    note(text)
