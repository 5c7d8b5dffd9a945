"""Items of the lamps: the number of a row in the environment's data set."""

from __future__ import annotations

from collections.abc import Sequence

ROOMS = ("hill", "barn", "lake", "mill", "road", "well", "gate", "tree")
COLOURS = ("red", "green", "blue")
ROWS = [(room, a, b) for room in ROOMS for a in COLOURS for b in COLOURS]
"""A room with two lamps."""


def items(split: str) -> Sequence[int]:
    """One row of each room is held out, each with another pair of colours."""
    return [n for n in range(len(ROWS)) if (n % 9 == n // 9) == (split == "test")]
