"""Coverage of the report's intervals and false claims of its headline, by simulation.

    python benchmarks/interval_coverage.py

Values are drawn per seed from distributions with a known mean; a claim counts as false where the
first and the last return of a run (or the returns of two algorithms) have the same distribution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from colearn.runs.over_seeds import Array, differ, estimate, mean_band
from colearn.runs.over_seeds import probability_of_improvement as probability
from colearn.runs.report.finding import improved

SEEDS = (2, 3, 4, 5, 7, 10)
Draw = Callable[[np.random.Generator, tuple[int, ...]], Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """A distribution of one value per seed."""

    draw: Draw
    mean: float


DISTRIBUTIONS = {
    "normal": Values(draw=lambda rng, size: rng.normal(size=size), mean=0.0),
    "skewness 1 (gamma)": Values(draw=lambda rng, size: rng.gamma(4.0, size=size), mean=4.0),
    "skewness 2 (exponential)": Values(draw=lambda rng, size: rng.exponential(size=size), mean=1.0),
    "one run in five breaks": Values(
        draw=lambda rng, size: rng.normal(size=size) - 5.0 * (rng.random(size) < 0.2), mean=-1.0
    ),
}


def mean_coverage(values: Values, seeds: int, rounds: int = 20_000) -> float:
    """How often the interval of `estimate` holds the mean of the distribution."""
    drawn = values.draw(np.random.default_rng(seeds), (seeds, rounds))
    _, low, high = mean_band(drawn)
    return float(np.mean((low <= values.mean) & (values.mean <= high)))


def probability_coverage(values: Values, seeds: int, rounds: int = 400) -> float:
    """How often the interval of P(X > Y) holds 1/2 where X and Y are alike."""
    rng = np.random.default_rng(seeds)
    held = 0
    for x, y in zip(
        values.draw(rng, (rounds, seeds)), values.draw(rng, (rounds, seeds)), strict=True
    ):
        estimate = probability(x, y)
        held += (
            estimate.low is None or estimate.high is None or estimate.low <= 0.5 <= estimate.high
        )
    return held / rounds


def false_pairs(values: Values, seeds: int, rounds: int = 400) -> float:
    """How often two algorithms that are alike are told apart."""
    rng = np.random.default_rng(seeds)
    pairs = zip(values.draw(rng, (rounds, seeds)), values.draw(rng, (rounds, seeds)), strict=True)
    return sum(differ(x, y) for x, y in pairs) / rounds


def false_changes(values: Values, seeds: int, rounds: int = 1_000) -> float:
    """How often a run that changes nothing is said to have improved or to have fallen."""
    rng = np.random.default_rng(seeds)
    first, last = values.draw(rng, (rounds, seeds)), values.draw(rng, (rounds, seeds))
    return sum(improved(estimate(row.tolist())) != 0 for row in last - first) / rounds


STATISTICS = {
    "mean: interval covers": mean_coverage,
    "P(X > Y): interval covers": probability_coverage,
    "pair told apart, falsely": false_pairs,
    "'improved' or 'fell', falsely": false_changes,
}


def main() -> None:
    """Print a table of rates for each statistic, distribution and number of seeds."""
    width = max(map(len, DISTRIBUTIONS))
    for title, rate in STATISTICS.items():
        print(f"{title}, by seeds\n{'':{width}}" + "".join(f"{n:>7}" for n in SEEDS))
        for name, values in DISTRIBUTIONS.items():
            print(f"{name:{width}}" + "".join(f"{rate(values, n):7.1%}" for n in SEEDS), flush=True)
        print()


if __name__ == "__main__":
    main()
