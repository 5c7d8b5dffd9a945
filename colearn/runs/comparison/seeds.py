"""States before a comparison starts which differences its seeds can show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import NormalDist, variance

from colearn.runs.over_seeds import CONFIDENCE, can_differ
from colearn.runs.record import ComparisonFolder
from colearn.text.notes import note

from .plan import Plan

POWER = 0.8
"""Probability with which a difference is to be found."""
_LEVEL = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)
_REACH = _LEVEL + NormalDist().inv_cdf(POWER)
_CORRECTION = _LEVEL**2 / 4


def seeds_for(difference: float) -> int:
    """Number of seeds of each of two algorithms with which a difference is found.

    difference: that of the algorithms' means, in standard deviations between the runs of one
    algorithm. By the normal approximation with Guenther's correction (1981) for estimated
    deviations, n = 2 ((z_0.975 + z_0.8) / d)^2 + z_0.975^2 / 4, at 95% with a power of 80%.
    """
    return math.ceil(2 * (_REACH / difference) ** 2 + _CORRECTION)


def difference_for(seeds: int) -> float:
    """The smallest difference, in standard deviations, that `seeds` seeds of each algorithm find:
    the inverse of `seeds_for`."""
    return _REACH * math.sqrt(2 / (seeds - _CORRECTION))


def seeds_line(seeds: int, deviation: float | None = None, metric: str = "return") -> str:
    """One line on the differences that `seeds` seeds of each algorithm find.

    deviation: the standard deviation of `metric` between runs of one algorithm, if it is known.
    """
    if not can_differ(seeds, seeds):
        count = f"{seeds} {'seed' if seeds == 1 else 'seeds'}"
        return (
            f"{count}: too few to tell algorithms apart, or to call a return changed, at 95%; four "
            "can (--seeds 4)"
        )
    found = difference_for(seeds)
    unit, scale, halved = "standard deviations between runs", 1.0, seeds_for(found / 2)
    if deviation:
        unit, scale = f"of {metric}, by the deviation of the runs that are finished", deviation
    return (
        f"{seeds} seeds tell two algorithms apart, four times in five, that differ by "
        f"{found * scale:.2g} {unit}; half the difference needs {halved} seeds"
    )


def tell_seeds(plan: Plan, out: Path) -> None:
    """Report on stderr which differences the seeds of a comparison of several algorithms can show.
    Finished runs in `out` give the deviation between runs."""
    if len(plan.algorithms) > 1:
        metric = plan.runs[0].metric
        note(seeds_line(plan.seeds, _deviation(ComparisonFolder(out), metric), metric))


def _deviation(folder: ComparisonFolder, metric: str) -> float | None:
    """Standard deviation of the last value of a metric between runs, pooled over the algorithms."""
    values: dict[str, list[float]] = {}
    for label, run in folder.planned() if folder.exists() else ():
        last = run.record().last.get(metric) if run.status == "finished" else None
        if last is not None:
            values.setdefault(label, []).append(last)
    return pooled_deviation([of_label for of_label in values.values() if len(of_label) > 1])


def pooled_deviation(groups: Sequence[Sequence[float]]) -> float | None:
    """Standard deviation within groups of at least two values each; None without groups."""
    freedom = sum(len(group) - 1 for group in groups)
    if not freedom:
        return None
    return math.sqrt(sum((len(group) - 1) * variance(group) for group in groups) / freedom)
