"""Algorithms x seeds on one task: planned, launched side by side, reported."""

from .api import compare

__all__ = ["compare"]
