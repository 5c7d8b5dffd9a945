"""Garbage collection settings: exclude objects that live for the whole run from collection."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def few_collections() -> Iterator[None]:
    """Excludes all live objects from garbage collection during a run, because a run creates and
    frees hundreds of thousands of tree nodes. Collects garbage once before freezing the live
    objects, and unfreezes these objects at the end.

    Does nothing if the program has already frozen most of its objects, because unfreezing would
    undo the program's freeze.
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
