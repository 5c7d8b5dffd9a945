"""Joint tests of the mean of noisy vectors: bias and variance with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

DRAWS = 1_000
GROUPS = 1_000
"""More estimates than this are averaged in groups before they are resampled."""
LEVEL = 0.05
ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class Bias:
    """Estimates x_r, independent, against the vector g that their mean should be."""

    replicates: int
    coordinates: int
    """Tested one by one."""
    outside: int
    """Those whose own 95% interval misses g; 5% of them would by chance."""
    max_t: float
    """The largest |mean - g| in units of its standard error."""
    max_t_p: float
    """P(a largest |t| like that without bias), from the multiplier bootstrap."""
    norm_p: float
    """The same for |mean - g|^2 over all coordinates."""
    relative: tuple[float, float, float]
    """|E x - g| / |g|: estimate and 95% interval, the noise of the mean taken out."""
    along: tuple[float, float, float]
    """<mean, g> / |g|^2 with its 95% interval: 1 without bias."""
    cosine: float
    """Of the mean and g."""


def bias(estimates: Array, truth: Array, tested: NDArray[np.bool_], seed: int) -> Bias:
    """`estimates` [R, D], `truth` [D]; `tested` [D] marks the coordinates for the test by |t|.

    The reference of both tests is the centred estimates weighted with normal numbers: what their
    mean would do without bias.
    """
    count = len(estimates)
    mean = estimates.mean(axis=0)
    gap = mean - truth
    centred = estimates - mean
    error = np.sqrt((centred**2).mean(axis=0) / (count - 1))
    # What is always the same but for rounding has no |t|; the norm holds it.
    tested = tested & (error > ROUNDING * error.max())
    error = error[tested]
    t = np.abs(gap[tested] / error)
    # 0 where a short run leaves no coordinate to test: p is 1 then.
    largest = float(t.max(initial=0.0))
    groups = grouped(centred)
    weights = np.random.default_rng(seed).normal(size=(DRAWS, len(groups))) / len(groups)
    reference = weights @ groups
    size = float(truth @ truth)
    along = centred @ truth / size
    spread = 1.96 * along.std() / np.sqrt(count - 1)
    place = float(mean @ truth) / size
    return Bias(
        replicates=count,
        coordinates=len(t),
        outside=int((t > 1.96).sum()),
        max_t=largest,
        max_t_p=_p(np.abs(reference[:, tested] / error).max(axis=1, initial=0.0), largest),
        norm_p=_p((reference**2).sum(axis=1), float(gap @ gap)),
        relative=_relative(gap, centred, size),
        along=(place, place - spread, place + spread),
        cosine=float(mean @ truth / np.sqrt((mean @ mean) * size)),
    )


def grouped(values: Array) -> Array:
    """At most GROUPS means of groups of equal size; what is left over goes."""
    size = -(-len(values) // GROUPS)
    count = len(values) // size
    means: Array = values[: count * size].reshape(count, size, *values.shape[1:]).mean(axis=1)
    return means


def total_variance(estimates: Array) -> Array:
    """One number for each estimate, their mean the trace of the covariance."""
    count = len(estimates)
    squares: Array = ((estimates - estimates.mean(axis=0)) ** 2).sum(axis=1)
    return squares * count / (count - 1)


def resampled(values: Array, seed: int) -> Array:
    """The mean of `values` along the first axis, then those of DRAWS bootstrap samples: shape
    [1 + DRAWS, ...]."""
    groups = grouped(values)
    rng = np.random.default_rng(seed)
    count = len(groups)
    taken = rng.multinomial(count, np.full(count, 1 / count), size=DRAWS) / count
    return np.concatenate([values.mean(axis=0, keepdims=True), taken @ groups])


def interval(draws: Array) -> tuple[float, float, float]:
    """The estimate, which comes first, and its 95% percentile interval."""
    low, high = np.quantile(draws[1:], (LEVEL / 2, 1 - LEVEL / 2))
    return float(draws[0]), float(low), float(high)


def slopes(levels: Sequence[int], draws: Sequence[Array]) -> Array:
    """Least-squares slope of log value over log level, for the estimate and for every draw."""
    x = np.log(levels) - np.log(levels).mean()
    return x @ np.log(np.stack(draws)) / (x @ x)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted so that one of them is below 5% by chance in 5% of all families (Holm 1979)."""
    adjusted = [0.0] * len(p_values)
    running = 0.0
    for rank, place in enumerate(np.argsort(p_values).tolist()):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = running
    return adjusted


def _p(reference: Array, statistic: float) -> float:
    return float((1 + (reference >= statistic).sum()) / (1 + len(reference)))


def _relative(gap: Array, centred: Array, size: float) -> tuple[float, float, float]:
    """|gap|^2 less the variance of the mean is unbiased for the squared bias."""
    count = len(centred)
    covariance = centred.T @ centred / (count - 1)
    squared = float(gap @ gap - np.trace(covariance) / count)
    error = np.sqrt(
        4 * float(gap @ covariance @ gap) / count + 2 * float((covariance**2).sum()) / count**2
    )
    low, middle, high = (
        float(np.sqrt(max(0.0, squared + z * error) / size)) for z in (-1.96, 0.0, 1.96)
    )
    return middle, low, high
