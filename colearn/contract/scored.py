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
    all_numbers = list(numbers)
    if len(all_numbers) == 1:
        return all_numbers[0]
    scored = [number for number in all_numbers if not isnan(number)]
    if scored:
        return sum(scored) / len(scored)
    return nan if all_numbers else 0.0


def sum_scored(numbers: Iterable[float]) -> float:
    """Return the sum of the scored numbers: NaN if no number is scored, 0 if there are no
    numbers."""
    all_numbers = list(numbers)
    scored = [number for number in all_numbers if not isnan(number)]
    return nan if all_numbers and not scored else sum(scored, 0.0)
