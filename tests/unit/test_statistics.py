"""Bootstrap, probability of improvement, smoothing and alignment against hand or scipy values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from colearn.comparison.statistics import (
    can_differ,
    estimate,
    mean_band,
    on_common_grid,
    probability_of_improvement,
    resampling_weights,
    time_weighted_average,
)


def test_interval_agrees_with_scipys_percentile_bootstrap():
    values = np.random.default_rng(3).normal(2.0, 1.5, size=12)
    ours = estimate(values.tolist())
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=10_000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    assert ours.mean == pytest.approx(values.mean())
    assert ours.low == pytest.approx(theirs.low, abs=0.03)
    assert ours.high == pytest.approx(theirs.high, abs=0.03)
    assert ours.seeds == 12


def test_interval_of_two_seeds_is_their_range():
    # of the means 0, 1/2, 1/2, 1 each tail of 2.5% lies within the outer quarter
    assert estimate([0.0, 1.0]) == estimate([1.0, 0.0])
    both = estimate([0.0, 1.0])
    assert (both.mean, both.low, both.high) == (0.5, 0.0, 1.0)


def test_interval_repeats_and_equal_values_have_no_width():
    values = [0.1, 0.7, 0.3, 0.35]
    assert estimate(values) == estimate(values)
    equal = estimate([0.1, 0.1, 0.1])
    assert equal.low == equal.high == pytest.approx(0.1)


def test_one_seed_has_no_interval_and_no_finite_seed_no_estimate():
    one = estimate([None, 0.4, math.nan])
    assert (one.mean, one.low, one.high, one.seeds) == (0.4, None, None, 1)
    assert estimate([None, math.inf]) is None


def test_interval_covers_the_mean_about_as_often_as_it_says():
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(200):
        found = estimate(rng.normal(size=20).tolist())
        covered += found.low <= 0.0 <= found.high
    assert 0.88 <= covered / 200 <= 0.99


def test_resampling_weights_are_draws_with_replacement():
    weights = resampling_weights(5, resamples=4000)
    assert weights.shape == (4000, 5)
    assert weights.sum(axis=1) == pytest.approx(np.ones(4000))
    assert np.allclose(weights * 5, np.round(weights * 5))
    assert weights.mean(axis=0) == pytest.approx(np.full(5, 0.2), abs=0.01)


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
    found = probability_of_improvement(x, y)
    assert found.mean == pytest.approx(stats.mannwhitneyu(x, y).statistic / 63)
    assert found.low < found.mean < found.high
    assert found.seeds == 7


def test_probability_of_improvement_resamples_both_sides_apart():
    rng = np.random.default_rng(2)
    x, y = rng.normal(0.5, 1, 8), rng.normal(0, 1, 8)
    draws = np.random.default_rng(9)
    samples = []
    for _ in range(4000):
        a, b = draws.choice(x, 8), draws.choice(y, 8)
        samples.append(np.mean(a[:, None] > b) + 0.5 * np.mean(a[:, None] == b))
    found = probability_of_improvement(x, y)
    expected = np.percentile(samples, [2.5, 97.5])
    assert (found.low, found.high) == pytest.approx(tuple(expected), abs=0.02)


def test_probability_of_improvement_of_equal_or_single_seeds():
    equal = probability_of_improvement([1.0, 1.0], [1.0, 1.0])
    assert (equal.mean, equal.low, equal.high) == (0.5, 0.5, 0.5)
    assert probability_of_improvement([1.0], [0.0, 0.0]).low is None


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


def test_grid_of_single_points_is_one_point():
    grid, rows = on_common_grid([([0], [1.0]), ([0], [3.0])])
    assert grid.tolist() == [0.0]
    assert rows.tolist() == [[1.0], [3.0]]


def test_grid_takes_the_last_of_repeated_points():
    _, rows = on_common_grid([([0, 1, 1, 2], [0.0, 9.0, 4.0, 8.0])], points=3)
    assert rows.tolist() == [[0.0, 4.0, 8.0]]
