"""All randomness of a run, derived from names and not from a shared stream.

A generator is a function of (seed, what it is for, where), so branches of a tree are independent,
the make-up of a batch changes nothing, and a resumed run draws what the uninterrupted one draws.
"""

from __future__ import annotations

import hashlib

import numpy as np

Key = int | str


def derive_seed(*keys: Key) -> int:
    """A 63-bit seed from any sequence of names and numbers, the same on every platform."""
    text = "\x1f".join(f"{type(key).__name__}:{key}" for key in keys)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def derive_rng(*keys: Key) -> np.random.Generator:
    """An independent generator for (seed, purpose, episode, path, ...)."""
    return np.random.default_rng(derive_seed(*keys))
