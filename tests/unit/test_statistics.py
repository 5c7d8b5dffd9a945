"""Intervals, probability of improvement, smoothing and alignment against hand or scipy values."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from colearn.runs.over_seeds import (
    can_differ,
    differ,
    estimate,
    mean_band,
    on_common_grid,
    probability_of_improvement,
    time_weighted_average,
)

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from interval_coverage import DISTRIBUTIONS, false_changes, false_pairs, mean_coverage


def test_interval_is_the_one_sample_t_tests():
    values = np.random.default_rng(3).normal(2.0, 1.5, size=12)
    ours = estimate(values.tolist())
    theirs = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert ours.mean == pytest.approx(values.mean())
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high))
    assert ours.seeds == 12


def test_interval_of_two_seeds_is_as_wide_as_two_seeds_deserve():
    # Student's quantile with one degree of freedom is 12.7062; the standard error is 1/2
    both = estimate([0.0, 1.0])
    assert both.mean == 0.5
    assert (both.low, both.high) == pytest.approx((0.5 - 6.3531, 0.5 + 6.3531), abs=1e-4)


def test_the_interval_of_a_time_ends_at_0():
    """Student's t with one degree of freedom is 12.706: 2 plus or minus 12.706."""
    free, cut = estimate([1.0, 3.0]), estimate([1.0, 3.0], least=0.0)
    assert free.low == pytest.approx(2.0 - 12.706, abs=1e-3)
    assert (cut.mean, cut.low, cut.high) == (free.mean, 0.0, free.high)


def test_the_interval_of_a_share_ends_at_1_unless_a_value_lies_beyond():
    """0.91 plus or minus 2.776445 * sqrt(0.046 / 4 / 5), by hand."""
    shares = [0.96, 0.98, 0.94, 0.95, 0.72]
    free, cut = estimate(shares), estimate(shares, least=0.0, most=1.0)
    assert (free.low, free.high) == pytest.approx((0.77685, 1.04315), abs=1e-5)
    assert (cut.mean, cut.low, cut.high) == (free.mean, free.low, 1.0)
    assert estimate([*shares, 1.2], most=1.0).high > 1.1, "it is no share"
    assert estimate([0.9, 1 + 1e-15], most=1.0).high == 1.0, "rounding"


def test_equal_values_have_no_width():
    equal = estimate([0.1, 0.1, 0.1])
    assert equal.low == equal.high == pytest.approx(0.1)


def test_one_seed_has_no_interval_and_no_finite_seed_no_estimate():
    one = estimate([None, 0.4, math.nan])
    assert (one.mean, one.low, one.high, one.seeds) == (0.4, None, None, 1)
    assert estimate([None, math.inf]) is None


@pytest.mark.parametrize("seeds", [2, 3, 4, 5, 10])
@pytest.mark.parametrize("name", ["normal", "skewness 1 (gamma)"])
def test_interval_covers_the_mean_from_two_seeds_on(name, seeds):
    # 20,000 draws: the rate itself is known to 0.4 points
    assert 0.928 <= mean_coverage(DISTRIBUTIONS[name], seeds) <= 0.955


@pytest.mark.parametrize("seeds", [2, 3, 4, 5, 10])
def test_a_run_that_changes_nothing_is_seldom_said_to_have_improved(seeds):
    for values in DISTRIBUTIONS.values():
        assert false_changes(values, seeds, rounds=300) <= (0.09 if seeds >= 4 else 0.0)


@pytest.mark.parametrize("seeds", [2, 3, 4, 5])
def test_two_algorithms_that_are_alike_are_seldom_told_apart(seeds):
    rate = false_pairs(DISTRIBUTIONS["skewness 2 (exponential)"], seeds, rounds=300)
    assert rate <= (0.085 if seeds >= 4 else 0.0)


def test_band_is_the_interval_at_every_point():
    rows = np.random.default_rng(5).normal(size=(6, 3))
    mean, low, high = mean_band(rows)
    for point in range(3):
        expected = estimate(rows[:, point].tolist())
        assert mean[point] == pytest.approx(expected.mean)
        assert (low[point], high[point]) == pytest.approx((expected.low, expected.high))


def test_band_of_one_seed_is_its_curve():
    mean, low, high = mean_band([[1.0, 2.0]])
    assert mean.tolist() == low.tolist() == high.tolist() == [1.0, 2.0]


def test_probability_of_improvement_by_hand():
    # pairs: 1>0, 1=1, 3>0, 3>1 -> (1 + 1/2 + 1 + 1) / 4
    assert probability_of_improvement([1.0, 3.0], [0.0, 1.0]).mean == 0.875
    assert probability_of_improvement([0.0, 1.0], [1.0, 3.0]).mean == 0.125


def test_probability_of_improvement_agrees_with_the_rank_statistic():
    rng = np.random.default_rng(8)
    x, y = rng.normal(0.4, 1, 9), rng.normal(0, 1, 7)
    improvement = probability_of_improvement(x, y)
    assert improvement.mean == pytest.approx(stats.mannwhitneyu(x, y).statistic / 63)
    assert improvement.low < improvement.mean < improvement.high
    assert improvement.seeds == 7


def test_interval_of_the_probability_is_brunner_and_munzels():
    """scipy's statistic is (P - 1/2) over the same standard error, and its p-value is Student's
    with the same degrees of freedom: those whose 97.5% quantile is our reach over that error."""
    rng = np.random.default_rng(2)
    x, y = rng.normal(0.5, 1, 14), rng.normal(0, 2, 9)
    improvement, theirs = probability_of_improvement(x, y), stats.brunnermunzel(x, y)
    error = (improvement.mean - 0.5) / -theirs.statistic
    assert improvement.low > 0.0 and improvement.high < 1.0
    reach = (improvement.high - improvement.low) / 2
    assert improvement.mean == pytest.approx((improvement.high + improvement.low) / 2)
    freedom = brentq(lambda f: stats.t.ppf(0.975, f) - reach / error, 2.0, 100.0)
    assert 2 * stats.t.sf(abs(theirs.statistic), freedom) == pytest.approx(theirs.pvalue)


def test_interval_of_the_probability_stays_a_probability():
    # 2/3 +- 2.776 * (2/27) ** 0.5
    improvement = probability_of_improvement([2.0, 4.0, 6.0], [1.0, 3.0, 5.0])
    assert (improvement.mean, improvement.low, improvement.high, improvement.seeds) == (
        pytest.approx(2 / 3),
        0.0,
        1.0,
        3,
    )


def test_probability_of_seeds_that_do_not_overlap_stays_uncertain():
    # four of four pairs without a common seed: the lower bound is 0.025 ** (1 / 4)
    improvement = probability_of_improvement([5.0, 6.0, 7.0, 8.0], [1.0, 2.0, 3.0, 4.0, 4.5])
    assert (improvement.mean, improvement.high) == (1.0, 1.0)
    assert improvement.low == pytest.approx(0.025**0.25)
    other = probability_of_improvement([1.0, 2.0, 3.0, 4.0, 4.5], [5.0, 6.0, 7.0, 8.0])
    assert (other.mean, other.low, other.high) == (0.0, 0.0, pytest.approx(1 - 0.025**0.25))


def test_probability_of_improvement_of_equal_or_single_seeds():
    equal = probability_of_improvement([1.0, 1.0], [1.0, 1.0])
    assert (equal.mean, equal.low, equal.high) == (0.5, 0.0, 1.0)
    single = probability_of_improvement([1.0], [0.0, 2.0])
    assert (single.mean, single.low, single.high, single.seeds) == (0.5, None, None, 1)


def test_pairs_differ_where_the_exact_rank_test_says_so():
    assert differ([5.0, 6.0, 7.0, 8.0], [1.0, 2.0, 3.0, 4.0])  # p = 2 / 70
    assert not differ([4.5, 6.0, 7.0, 3.5], [1.0, 2.0, 3.0, 4.0])  # one inversion: p = 4 / 70
    assert not differ([5.0, 6.0, 7.0], [1.0, 2.0, 3.0])  # p = 2 / 20 at best


def test_pairs_with_ties_are_permuted():
    # 0 0 0 0 against 1 1 1 1: 2 of 70 relabellings are as extreme
    assert differ([1.0] * 4, [0.0] * 4)
    assert not differ([1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0])
    # p = 0.079; the normal approximation, which is for many seeds, says 0.043
    assert not differ([0.0, 0.0, 1.0, 2.0, 2.0], [2.0, 2.0, 2.0, 3.0, 3.0])


@pytest.mark.parametrize(("n", "m"), [(1, 9), (2, 2), (3, 3), (3, 4), (4, 4), (5, 5), (2, 8)])
def test_enough_seeds_is_what_the_exact_rank_test_allows(n, m):
    p = stats.mannwhitneyu(np.arange(n) + 100, np.arange(m), method="exact").pvalue
    assert can_differ(n, m) == (p <= 0.05)


def test_moving_average_by_hand_over_uneven_steps():
    x, y, scale = [0.0, 1.0, 4.0], [2.0, 4.0, 0.0], 2.0
    near, far = math.exp(-0.5), math.exp(-1.5)
    expected = [
        2.0,
        (2 * near + 4) / (near + 1),
        (2 * near * far + 4 * far + 0) / (near * far + far + 1),
    ]
    assert time_weighted_average(x, y, scale) == pytest.approx(expected)


def test_moving_average_keeps_constants_and_without_scale_everything():
    x = [0.0, 0.1, 5.0, 40.0]
    assert time_weighted_average(x, [3.0] * 4, 2.0) == pytest.approx([3.0] * 4)
    assert time_weighted_average(x, [1.0, 2.0, 0.0, 9.0], 0.0).tolist() == [1.0, 2.0, 0.0, 9.0]


def test_moving_average_forgets_by_distance_not_by_count():
    sparse = time_weighted_average([0.0, 10.0], [1.0, 0.0], 1.0)
    dense = time_weighted_average([0.0, 0.1], [1.0, 0.0], 1.0)
    assert sparse[-1] < 1e-4 < dense[-1]


def test_grid_covers_only_the_shared_range():
    grid, rows = on_common_grid([([0, 10], [0.0, 1.0]), ([2, 6, 8], [5.0, 5.0, 7.0])], points=4)
    assert grid.tolist() == [2.0, 4.0, 6.0, 8.0]
    assert rows[0] == pytest.approx([0.2, 0.4, 0.6, 0.8])
    assert rows[1] == pytest.approx([5.0, 5.0, 5.0, 7.0])


def test_grid_has_a_hundred_steps():
    grid, rows = on_common_grid([([0, 1], [0.0, 2.0])])
    assert len(grid) == 101 and rows[0][1] == pytest.approx(0.02)


def test_grid_of_single_points_is_one_point():
    grid, rows = on_common_grid([([0], [1.0]), ([0], [3.0])])
    assert grid.tolist() == [0.0]
    assert rows.tolist() == [[1.0], [3.0]]


def test_grid_takes_the_last_of_repeated_points():
    _, rows = on_common_grid([([0, 1, 1, 2], [0.0, 9.0, 4.0, 8.0])], points=3)
    assert rows.tolist() == [[0.0, 4.0, 8.0]]
