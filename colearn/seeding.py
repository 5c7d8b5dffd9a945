"""All randomness of a run, derived from names and not from a shared stream.

A generator is a function of (seed, what it is for, where), so branches of a tree are independent,
the make-up of a batch changes nothing, and a resumed run draws what the uninterrupted one draws.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

Key = int | str


def derive_seed(*keys: Key) -> int:
    """A 63-bit seed from any sequence of names and numbers, the same on every platform."""
    text = "\x1f".join(f"{type(key).__name__}:{key}" for key in keys)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def action_seed(seed: int, episode: Key, path: Sequence[int], seat: str, draw: int) -> int:
    """Of one action: the `draw`-th that a seat says at the node of that path, whoever sits there
    and whatever else is in the batch."""
    return derive_seed(seed, "act", episode, *path, seat, draw)


def derive_rng(*keys: Key) -> np.random.Generator:
    """An independent generator for (seed, purpose, episode, path, ...)."""
    return np.random.default_rng(derive_seed(*keys))
