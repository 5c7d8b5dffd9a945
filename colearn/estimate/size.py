"""Formats byte counts as text."""

from __future__ import annotations


def size_text(count: int) -> str:
    """Format bytes in the largest unit in which the value is at least 1."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count} B"
