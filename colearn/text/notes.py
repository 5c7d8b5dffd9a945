"""Notes to the user on stderr, printed only by rank 0."""

from __future__ import annotations

import os
import sys
import time
from functools import lru_cache

PREFIX = "note: "


EVERY = 5.0
"""Minimum number of seconds between the notes of a `TimeLeft`."""


class TimeLeft:
    """Reports the finished fraction of a piece of work and the remaining time."""

    def __init__(self, activity: str) -> None:
        self._what = activity
        self._started = self._noted = time.monotonic()

    def report(self, fraction: float) -> None:
        """Report the finished fraction, at most every `EVERY` seconds."""
        now = time.monotonic()
        if now - self._noted < EVERY or fraction >= 1:
            return
        self._noted = now
        remaining = (now - self._started) * (1 - fraction) / fraction
        note(f"{self._what}: {fraction:.0%}, about {remaining:.0f} s left")


def speaks() -> bool:
    """Whether this process may print. Launchers such as torchrun set the environment variable RANK
    to the number of the process."""
    return os.environ.get("RANK", "0") == "0"


def note(text: str) -> None:
    """Print a note on stderr."""
    if speaks():
        print(PREFIX + text, file=sys.stderr, flush=True)


@lru_cache(maxsize=1024)
def note_once(text: str) -> None:
    """Print a note on stderr, but only once per process."""
    note(text)
