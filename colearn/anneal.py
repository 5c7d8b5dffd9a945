"""What falls away over a share of the training budget, on a straight line."""

from __future__ import annotations


def left(anneal_fraction: float | None, done: float) -> float:
    """The part that is left, 1 to 0, when the share `done` of the budget is used and the share
    `anneal_fraction` is what it takes; None: all of it stays."""
    return 1.0 if anneal_fraction is None else max(0.0, 1.0 - done / anneal_fraction)
