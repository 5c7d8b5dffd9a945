"""Garbage collection: freezes objects that live for the whole run."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def few_collections() -> Iterator[None]:
    """Excludes all live objects from garbage collection, because a run creates and frees hundreds
    of thousands of tree nodes. Collects once before freezing, and unfreezes at the end.

    If the program has already frozen most of its objects, does nothing: unfreezing would undo the
    program's freeze.
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
