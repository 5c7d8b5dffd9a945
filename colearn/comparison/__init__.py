"""Comparisons of several algorithms with several seeds on one task. Plans the runs, executes them
in parallel and writes a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import compare

__all__ = ["compare"]


def __getattr__(name: str) -> Any:
    """Imports names lazily, because the fork server is in this package, and runs that the fork
    server starts do not need the imports of the report."""
    if name != "compare":
        raise AttributeError(f"module 'colearn.comparison' has no attribute '{name}'")
    from .api import compare

    return compare
