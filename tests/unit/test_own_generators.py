"""Code that draws from Python's and numpy's global generators."""

from __future__ import annotations

import random

import numpy as np
import pytest

from colearn.contract.seeding import OwnGenerators


def drawn(generators: OwnGenerators) -> tuple[float, float]:
    with generators.drawn_from():
        return random.random(), float(np.random.random())


def test_an_objects_draws_continue_its_own_seed_whatever_is_drawn_between() -> None:
    expected = random.Random(3), np.random.RandomState(3)
    first, other = OwnGenerators(3), OwnGenerators(4)
    for _ in range(2):
        assert drawn(first) == (expected[0].random(), expected[1].random_sample())
        drawn(other)


def test_the_global_generators_are_as_they_were_afterwards() -> None:
    before = random.getstate(), np.random.get_state()[1].tolist()
    with pytest.raises(KeyError), OwnGenerators(3).drawn_from():
        random.random()
        np.random.random()
        raise KeyError
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before
