"""Statistics over seeds: bootstrap intervals, probability of improvement, smoothing, alignment.

A run is one draw of an algorithm; everything here resamples whole runs, never evaluations within a
run, since those are not independent. All resampling uses a fixed generator, so a report repeats.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

CONFIDENCE = 0.95
RESAMPLES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean over seeds and its 95% interval; the interval is None where one seed gives none."""

    mean: float
    low: float | None
    high: float | None
    seeds: int
    """How many seeds entered it."""


def resampling_weights(count: int, resamples: int = RESAMPLES, stream: int = 0) -> Array:
    """Weights (resamples, count) of `count` items, each row one draw with replacement.

    `stream` picks an independent fixed generator.
    """
    draws = np.random.default_rng(stream).integers(0, count, size=(resamples, count))
    weights = np.zeros((resamples, count))
    np.add.at(weights, (np.arange(resamples)[:, None], draws), 1.0 / count)
    return weights


def interval(samples: ArrayLike, confidence: float = CONFIDENCE) -> tuple[Array, Array]:
    """The central percentile interval of bootstrap samples (resamples, ...)."""
    tail = 50.0 * (1.0 - confidence)
    low, high = np.percentile(np.asarray(samples), [tail, 100.0 - tail], axis=0)
    return low, high


def estimate(values: Sequence[float | None]) -> Estimate | None:
    """Mean and 95% percentile-bootstrap interval of one value per seed.

    Seeds without a finite value are left out and show in `seeds`; None if no seed has one.
    """
    kept = np.array([value for value in values if value is not None and math.isfinite(value)])
    if kept.size == 0:
        return None
    mean = float(kept.mean())
    if kept.size == 1:
        return Estimate(mean=mean, low=None, high=None, seeds=1)
    # rounding must not make an interval out of equal values
    low, high = interval((resampling_weights(kept.size) @ kept).clip(kept.min(), kept.max()))
    return Estimate(mean=mean, low=float(low), high=float(high), seeds=int(kept.size))


def mean_band(rows: ArrayLike) -> tuple[Array, Array, Array]:
    """Mean, lower and upper 95% bound of curves (seeds, points), the seeds resampled whole.

    With one seed the bounds are the curve itself.
    """
    matrix = np.asarray(rows, dtype=np.float64)
    samples = resampling_weights(matrix.shape[0]) @ matrix
    low, high = interval(samples.clip(matrix.min(axis=0), matrix.max(axis=0)))
    return matrix.mean(axis=0), low, high


def probability_of_improvement(x: ArrayLike, y: ArrayLike) -> Estimate:
    """P(X > Y) + P(X = Y) / 2 over all pairs of seeds, with a stratified bootstrap interval.

    Stratified: the seeds of X and of Y are resampled apart. `seeds` is the smaller number of seeds;
    with a single seed on either side there is no interval.
    """
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    wins = (first[:, None] > second[None, :]) + 0.5 * (first[:, None] == second[None, :])
    mean, seeds = float(wins.mean()), min(first.size, second.size)
    if seeds < 2:
        return Estimate(mean=mean, low=None, high=None, seeds=seeds)
    samples = np.einsum(
        "ri,ij,rj->r",
        resampling_weights(first.size, stream=1),
        wins,
        resampling_weights(second.size, stream=2),
        optimize=True,
    )
    low, high = interval(samples.clip(wins.min(), wins.max()))
    return Estimate(mean=mean, low=float(low), high=float(high), seeds=seeds)


def can_differ(x_seeds: int, y_seeds: int) -> bool:
    """Whether that many seeds can show a difference at 95% at all.

    A bootstrap interval collapses where two small samples are fully separated, whatever the chance
    of that. The exact two-sided rank test says what the chance is: 2 / C(n+m, n) at best.
    """
    return 2.0 / math.comb(x_seeds + y_seeds, x_seeds) <= 1.0 - CONFIDENCE


def time_weighted_average(x: ArrayLike, y: ArrayLike, scale: float) -> Array:
    """Exponential moving average of y over irregular x: a point at distance d weighs exp(-d/scale).

    `scale` is in units of x; zero or less returns y as it is. Weights are normalised, so the
    average of a constant is that constant from the first point on.
    """
    xs, ys = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if scale <= 0:
        return ys.copy()
    smooth = np.empty_like(ys)
    total = weight = 0.0
    for index, value in enumerate(ys):
        decay = math.exp(-(xs[index] - xs[index - 1]) / scale) if index else 0.0
        total, weight = decay * total + value, decay * weight + 1.0
        smooth[index] = total / weight
    return smooth


def on_common_grid(
    curves: Sequence[tuple[ArrayLike, ArrayLike]], points: int = 101
) -> tuple[Array, Array]:
    """Curves (x, y) interpolated linearly on one grid: the grid, and a row per curve.

    The grid covers the range that every curve has, so nothing is extrapolated; where they share a
    single point or none, it is that one place (the latest start), and a curve counts there with its
    nearest value. x must not decrease; of points with equal x the last one counts.
    """
    kept = [_without_repeats(np.asarray(x, float), np.asarray(y, float)) for x, y in curves]
    start = max(x[0] for x, _ in kept)
    stop = min(x[-1] for x, _ in kept)
    grid = np.linspace(start, stop, points) if stop > start else np.array([start])
    return grid, np.stack([np.interp(grid, x, y) for x, y in kept])


def _without_repeats(x: Array, y: Array) -> tuple[Array, Array]:
    last = np.append(np.diff(x) > 0, True)
    return x[last], y[last]
