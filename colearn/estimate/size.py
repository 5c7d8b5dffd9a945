"""Bytes as text."""

from __future__ import annotations


def size_text(count: int) -> str:
    """Bytes in the largest unit with a value of at least 1."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count} B"
