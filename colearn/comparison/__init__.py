"""Comparisons: algorithms x seeds on one task, planned, run in parallel and reported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import compare

__all__ = ["compare"]


def __getattr__(name: str) -> Any:
    """Imports names lazily, because the fork server is in this package and its runs do not need the
    report's imports."""
    if name != "compare":
        raise AttributeError(f"module 'colearn.comparison' has no attribute '{name}'")
    from .api import compare

    return compare
