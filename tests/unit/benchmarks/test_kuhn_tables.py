"""Tables of Kuhn poker against closed forms."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from kuhn_tables import EQUILIBRIUM, PAID, chances, nash_conv, run, seated, standardised

UNIFORM = np.full((12, 2), 0.5)


def test_the_equilibrium_has_the_games_value_and_nothing_to_gain():
    assert chances(EQUILIBRIUM) @ PAID == pytest.approx(-1 / 18)
    with np.errstate(divide="ignore"):
        assert nash_conv(np.log(np.maximum(EQUILIBRIUM, 1e-12))) == pytest.approx(0.0, abs=1e-9)
    assert nash_conv(np.log(UNIFORM)) == pytest.approx(11 / 12)


@pytest.mark.parametrize("learner", [0, 1])
def test_the_opponent_of_a_learner_plays_the_equilibrium(learner):
    mixed = seated(UNIFORM, learner)
    own = slice(0, 6) if learner == 0 else slice(6, 12)
    assert (mixed[own] == 0.5).all()
    assert (mixed == EQUILIBRIUM).all(1).sum() == 6


def test_a_turns_rewards_are_standardised_over_those_who_reached_it():
    # rewards 1, 1, 3 of the counted games: mean 5/3, deviation sqrt(8)/3
    found = standardised(np.array([1.0, 3.0, 9.0]), np.array([2.0, 1.0, 0.0]))
    assert found[:2] == pytest.approx([-(2 / 3) / (8**0.5 / 3), (4 / 3) / (8**0.5 / 3)], rel=1e-5)
    assert (standardised(np.ones(2), np.zeros(2)) == 0).all()


def test_self_play_against_the_equilibrium_alone_does_not_reach_it():
    settings = {"kl": 0.5, "refresh": 10}
    played, fixed = (run(0, **settings, fixed=fixed)[-1] for fixed in (False, True))
    assert played < 0.15 < fixed
