"""Garbage collection: freezes objects that live for the whole run."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def few_collections() -> Iterator[None]:
    """Freezes all live objects out of garbage collection: trees come and go by the hundred
    thousand nodes. Collects once before, and unfreezes at the end.

    A program that has frozen most of its objects itself keeps them so: unfreezing would undo it.
    """
    gc.collect()
    if gc.get_freeze_count() > len(gc.get_objects()):
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
