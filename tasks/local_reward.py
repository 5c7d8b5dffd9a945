"""Local rewards of Stronger-MAS (appendix B): masked convex combinations of scores."""

from __future__ import annotations

import math
from collections.abc import Mapping


def weights(**terms: float) -> Mapping[str, float]:
    """c: the coefficients of one role, which sum to 1."""
    assert math.isclose(sum(terms.values()), 1.0), terms
    return terms


def local_reward(
    coefficients: Mapping[str, float], scores: Mapping[str, float], available: bool
) -> float:
    """r_loc = m * sum(c * s), in [0, 1].

    scores: s in [0, 1], one for each coefficient.
    available: m; False if the scores could not be computed.
    """
    assert scores.keys() == coefficients.keys(), (scores, coefficients)
    if not available:
        return 0.0
    return sum(coefficients[term] * score for term, score in scores.items())
