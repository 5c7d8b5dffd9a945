"""The C library's heaps: one for all threads of a command."""

from __future__ import annotations

import ctypes
import sys

_ARENA_MAX = -8
"""`M_ARENA_MAX` of glibc's malloc.h."""


def one_heap() -> None:
    """Give new threads no heaps of their own, for the life of the process.

    Memory that a thread frees stays in its own heap, and an update in another thread cannot use it.
    With two models that decode at the same time, it is a fifth of a run's peak. To be called before
    libraries start threads, as numpy and torch do; the environment variable MALLOC_ARENA_MAX=1 does
    the same. Does nothing where the C library is not glibc.
    """
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:
            mallopt(_ARENA_MAX, 1)
