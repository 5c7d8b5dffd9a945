"""Derives a run's random seeds from names, not from a shared random generator.

A random generator is a function of (seed, purpose, place). Therefore, branches of a tree are
independent, the composition of a batch has no effect, and a resumed run draws the same numbers.
"""

from __future__ import annotations

import hashlib
import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

Key = int | str


def derive_seed(*keys: Key) -> int:
    """A 63-bit seed from any sequence of names and numbers, the same on every platform."""
    text = "\x1f".join(f"{type(key).__name__}:{key}" for key in keys)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def action_seed(seed: int, episode: Key, path: Sequence[int], seat: str, draw: int) -> int:
    """The seed of action number `draw` of a seat (an agent's place in the episode) at the node with
    path `path`. The seed does not depend on the seat's player or on the batch."""
    return derive_seed(seed, "act", episode, *path, seat, draw)


def derive_rng(*keys: Key) -> np.random.Generator:
    """An independent generator for (seed, purpose, episode, path, ...)."""
    return np.random.default_rng(derive_seed(*keys))


_global = threading.RLock()


@contextmanager
def borrowed_global_generators() -> Iterator[None]:
    """Context manager for code that draws from Python's and numpy's global generators. Only one
    thread at a time can be in the context. Both generators are restored on exit."""
    with _global:
        states = _states()
        try:
            yield
        finally:
            _set(states)


class OwnGenerators:
    """Holds a private random state for one object whose code draws from Python's and numpy's global
    generators."""

    def __init__(self, seed: int) -> None:
        with borrowed_global_generators():
            random.seed(seed)
            np.random.seed(seed % 2**32)
            self._kept = _states()

    @contextmanager
    def drawn_from(self) -> Iterator[None]:
        """Context manager in which Python's and numpy's global generators use this object's
        state."""
        with borrowed_global_generators():
            _set(self._kept)
            try:
                yield
            finally:
                self._kept = _states()


def _states() -> tuple[Any, Any]:
    return random.getstate(), np.random.get_state()


def _set(states: tuple[Any, Any]) -> None:
    random.setstate(states[0])
    np.random.set_state(states[1])
