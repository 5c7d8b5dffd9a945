"""Computes sums and means of rewards that may be unscored. NaN represents a reward of None.

A sum over time that includes an unscored reward is unscored, because NaN propagates. Means over
branches and sums over kinds of reward leave unscored rewards out, as in TRL.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan, nan


def as_number(reward: float | None) -> float:
    """Convert a task's reward to a number: None becomes NaN."""
    return nan if reward is None else reward


def as_reward(number: float) -> float | None:
    """Convert a number to a reward: NaN becomes None. This is the inverse of `as_number`."""
    return None if isnan(number) else number


def mean_scored(numbers: Iterable[float]) -> float:
    """Return the mean of the scored numbers: NaN if no number is scored, 0 if there are no
    numbers."""
    every = list(numbers)
    if len(every) == 1:
        return every[0]
    kept = [number for number in every if not isnan(number)]
    if kept:
        return sum(kept) / len(kept)
    return nan if every else 0.0


def sum_scored(numbers: Iterable[float]) -> float:
    """Return the sum of the scored numbers: NaN if no number is scored, 0 if there are no
    numbers."""
    every = list(numbers)
    kept = [number for number in every if not isnan(number)]
    return nan if every and not kept else sum(kept, 0.0)
