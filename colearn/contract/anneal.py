"""Linear annealing over a fraction of the training budget."""

from __future__ import annotations


def left(anneal_fraction: float | None, done: float) -> float:
    """The annealing factor, which falls linearly from 1 to 0. `done` is the fraction of the budget
    used. `anneal_fraction` is the fraction at which the factor reaches 0; if it is None, the factor
    stays 1."""
    return 1.0 if anneal_fraction is None else max(0.0, 1.0 - done / anneal_fraction)
