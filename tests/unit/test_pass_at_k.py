"""pass@k against hand-computed values and against all subsets."""

from __future__ import annotations

import itertools

import pytest

from colearn.comparison.pass_at_k import mean_pass_at_k, pass_at_k
from colearn.errors import ConfigError


@pytest.mark.parametrize(
    "samples, passed, k, value",
    [
        (10, 3, 1, 0.3),  # 1 - C(7,1)/C(10,1) = 1 - 7/10
        (5, 2, 2, 0.7),  # 1 - C(3,2)/C(5,2) = 1 - 3/10
        (4, 1, 3, 0.75),  # 1 - C(3,3)/C(4,3) = 1 - 1/4
        (10, 1, 10, 1.0),  # all are drawn
        (6, 4, 3, 1.0),  # only two failed, so three cannot all fail
        (6, 0, 3, 0.0),
        (6, 6, 1, 1.0),
        (1, 1, 1, 1.0),
    ],
)
def test_values_by_hand(samples, passed, k, value):
    assert pass_at_k(samples, passed, k) == pytest.approx(value, abs=1e-12)


def test_it_is_the_share_of_subsets_with_a_pass():
    for samples in range(1, 8):
        for passed in range(samples + 1):
            outcomes = [number < passed for number in range(samples)]
            for k in range(1, samples + 1):
                subsets = list(itertools.combinations(outcomes, k))
                share = sum(any(subset) for subset in subsets) / len(subsets)
                assert pass_at_k(samples, passed, k) == pytest.approx(share, abs=1e-12)


def test_large_numbers_do_not_overflow():
    # C(n-1, k)/C(n, k) = (n-k)/n
    assert pass_at_k(100_000, 1, 50_000) == pytest.approx(0.5, abs=1e-12)
    assert pass_at_k(100_000, 50_000, 1) == pytest.approx(0.5, abs=1e-12)


def test_the_mean_is_over_problems():
    assert mean_pass_at_k([(4, 1), (4, 4), (2, 0)], 1) == pytest.approx((0.25 + 1 + 0) / 3)


@pytest.mark.parametrize(
    "samples, passed, k, line",
    [
        (5, 6, 1, "passed: 6 must lie between 0 and samples (5)"),
        (5, -1, 1, "passed: -1 must lie"),
        (5, 2, 6, "k: 6 must lie between 1 and samples (5); draw more samples or lower k"),
        (5, 2, 0, "k: 0 must lie"),
    ],
)
def test_impossible_counts_are_named(samples, passed, k, line):
    with pytest.raises(ConfigError) as caught:
        pass_at_k(samples, passed, k)
    assert str(caught.value).startswith(line)


def test_no_problems_have_no_mean():
    with pytest.raises(ConfigError, match="counts: is empty"):
        mean_pass_at_k([], 1)
