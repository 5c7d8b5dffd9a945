"""Comparisons: algorithms x seeds on one task, planned, run in parallel and reported."""

from .api import compare

__all__ = ["compare"]
