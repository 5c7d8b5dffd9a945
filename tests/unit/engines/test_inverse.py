"""Sampling by the inverse of a cumulative sum, summed by blocks and as a whole."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from colearn.engines.sampling import BLOCK, inverse

SIZES = [7, 2 * BLOCK, 2 * BLOCK + 1, 9 * BLOCK, 20_011]


@pytest.mark.parametrize("size", SIZES)
def test_a_share_falls_where_the_whole_cumulative_sum_exceeds_it(size):
    rng = np.random.default_rng(size)
    chances = rng.random((6, size)) ** 8 * (rng.random((6, size)) < 0.3) + 1e-6
    shares = rng.random(6)
    mass = np.cumsum(chances.astype(np.float32).astype(np.float64), axis=1)
    expected = [
        np.searchsorted(m, u * m[-1], side="right") for m, u in zip(mass, shares, strict=False)
    ]
    found = inverse(torch.tensor(chances, dtype=torch.float32), torch.tensor(shares))
    assert found.tolist() == expected


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("share", [0.0, 0.5, 1 - 2**-53])
def test_an_index_without_probability_is_never_drawn(size, share):
    chances = torch.zeros(3, size)
    chances[0, 5], chances[1, size - 2], chances[2, size // 2] = 1.0, 0.1, 1e-30
    found = inverse(chances, torch.full((3,), share, dtype=torch.float64))
    assert found.tolist() == [5, size - 2, size // 2]


@pytest.mark.parametrize("size", SIZES)
def test_rounding_never_reaches_beyond_the_last_probability(size):
    """Three thirds: the largest share of their sum rounds to the sum itself or stays below it."""
    chances = torch.zeros(1, size)
    chances[0, :3] = 1 / 3
    assert inverse(chances, torch.tensor([1 - 2**-53], dtype=torch.float64)).tolist() == [2]
