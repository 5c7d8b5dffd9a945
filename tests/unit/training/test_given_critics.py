"""A critic of another run: which returns it may be recentred on, by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from credited import credited
from trees import chain

from colearn.errors import ConfigError
from colearn.methods.critic.centralized import Centralized
from colearn.methods.values.given import GivenCritics


def shift(mean: float, spread: float) -> float:
    """By how much values of 3 are shifted where two episodes earn mean - spread and mean + spread,
    and the critic was trained on returns of 0 +- 1."""
    shifts: list[float] = []
    learners = {"team": SimpleNamespace(shift=shifts.append)}
    critics: Any = SimpleNamespace(critic=Centralized(), value_model=str, learners=learners)
    episodes = credited(
        [chain([mean - spread], agents=("a",)), chain([mean + spread], agents=("a",))]
    )
    manifest: Any = SimpleNamespace(centre=0.0, deviation=1.0)
    values = {number: {"a": (3.0, None)} for number in range(2)}
    GivenCritics({"team": manifest}).recentre(critics, episodes, values)
    (shifted,) = shifts
    return shifted


def test_values_are_shifted_by_the_mean_of_return_minus_value() -> None:
    assert shift(10.0, 1.0) == 7.0


@pytest.mark.parametrize("mean", [19.0, -19.0])
def test_returns_up_to_twenty_deviations_away_are_of_the_same_scale(mean: float) -> None:
    assert shift(mean, 1.0) == mean - 3.0
    assert shift(2.0 * mean, 2.0) == 2.0 * mean - 3.0  # the larger deviation counts


@pytest.mark.parametrize("mean", [21.0, -21.0])
def test_returns_farther_away_are_of_another_scale(mean: float) -> None:
    with pytest.raises(ConfigError, match=r"critic\.from: team was trained on returns of 0 \+- 1"):
        shift(mean, 1.0)


@pytest.mark.parametrize("spread", [21.0, 1.0 / 21.0])
def test_returns_that_vary_twenty_times_as_much_or_as_little_are_of_another_scale(
    spread: float,
) -> None:
    with pytest.raises(ConfigError, match="those of this run are 0"):
        shift(0.0, spread)


def test_equal_returns_say_nothing_of_the_scale() -> None:
    assert shift(5.0, 0.0) == 2.0


def test_a_critic_is_frozen_until_its_part_of_the_budget_is_used() -> None:
    given = GivenCritics({}, frozen=0.25)
    assert (given.still(0.2), given.still(0.25)) == (True, False)
