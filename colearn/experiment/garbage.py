"""Fewer collections of garbage while a run holds many trees."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def few_collections() -> Iterator[None]:
    """What is loaded by now is not looked at by every collection: trees come and go by the hundred
    thousand nodes. What has died before is let go first, and in the end all is as it was."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
