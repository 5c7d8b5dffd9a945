"""Linear annealing over a fraction of the training budget."""

from __future__ import annotations

MEAN = 0.5
"""The level tau at which an expectile equals the mean."""


def left(anneal_fraction: float, done: float) -> float:
    """The annealing factor, which falls linearly from 1 to 0. `done` is the fraction of the budget
    used, and `anneal_fraction` the fraction at which the factor reaches 0."""
    return max(0.0, 1.0 - done / anneal_fraction)


def faded(level: float, anneal_fraction: float, done: float) -> float:
    """Expectile level after the fraction `done` of the training budget. The level anneals linearly
    to 1/2 (the mean) until the fraction `anneal_fraction` of the budget is used."""
    return MEAN + (level - MEAN) * left(anneal_fraction, done)
