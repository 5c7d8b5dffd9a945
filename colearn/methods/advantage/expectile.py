"""Expectiles. The tau-expectile e is a weighted mean in which numbers above e have weight tau, and
numbers below e have weight 1 - tau."""

from __future__ import annotations

from collections.abc import Sequence


def weighted(error: float, level: float) -> float:
    """Return 2 |tau - 1(error < 0)| * error. At tau = 1/2, the result equals the error."""
    return 2.0 * (level if error > 0.0 else 1.0 - level) * error


def expectile(numbers: Sequence[float], level: float) -> float:
    """Compute the exact expectile e: the weighted errors (number - e) sum to 0.

    Between two neighbours in the sorted list of numbers, the sum is linear in e. The search
    therefore tries each possible count of numbers below e. Example: 0 and 10 at tau = 0.9 give 9.
    """
    ordered = sorted(numbers)
    below, above = 0.0, float(sum(ordered))
    for count, number in enumerate(ordered):
        remaining = len(ordered) - count
        weight = (1.0 - level) * count + level * remaining
        root = ((1.0 - level) * below + level * above) / weight
        if root <= number:
            return max(root, ordered[0])  # equal numbers: no rounding error
        below, above = below + number, above - number
    return ordered[-1]
