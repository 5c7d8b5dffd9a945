"""Tables of Kuhn poker against closed forms."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from kuhn_tables import (
    EQUILIBRIUM,
    PAID,
    TWICE,
    chances,
    group_weights,
    nash_conv,
    run,
    seated,
    standardised,
)

from colearn.methods.advantage.self_play_groups import equal_trajectories

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


def test_the_weights_of_eq_3_are_those_of_the_librarys_class():
    """Three games: player_0's second move is reached in two of them. Per group of a role, the class
    multiplies an action by N / (G K), and the loss divides by N and by the two roles."""
    twice, once = int(np.flatnonzero(TWICE)[0]), int(np.flatnonzero(~TWICE)[0])
    drawn = np.zeros(len(TWICE))
    drawn[twice], drawn[once] = 2, 1
    factor, weight = group_weights(drawn, drawn)
    first, reply, again = np.split(factor * weight, [30, 60])
    # 1 / (P G K) with P = 2 roles, G = 3 games, and K = 2 or 1 turns, times the number of games
    assert first[[twice, once]] == pytest.approx([2 / 12, 1 / 6])
    assert again[: TWICE[: twice + 1].sum()].sum() == pytest.approx(2 / 12)
    assert reply[[twice, once]] == pytest.approx([2 / 6, 1 / 6])
    assert first.sum() + again.sum() + reply.sum() == pytest.approx(1)
    actions = {(0, 1, "a"): 1.0, (0, 3, "a"): 1.0, (1, 1, "a"): 1.0, (1, 3, "a"): 1.0}
    actions |= {(2, 1, "a"): 1.0}
    keys = {(place, "a"): "group" for place in range(3)}
    shipped = equal_trajectories(actions, keys)
    assert [shipped[place, 1, "a"] for place in (0, 2)] == pytest.approx(
        [factor[twice], factor[once]]
    )
    assert weight[once] == pytest.approx(1 / (2 * len(actions)))


def test_with_eq_3s_weights_table_3s_claim_holds_and_the_rest_is_no_equilibrium():
    settings = {"kl": 0.5, "refresh": 10, "equal_trajectories": True}
    played, fixed = (
        np.mean([run(seed, **settings, fixed=fixed)[-1] for seed in range(4)])
        for fixed in (False, True)
    )
    assert played < fixed
    many = {"games": 131072, "kl": 0.5, "refresh": 10}
    weighed, alike = (run(0, **many, equal_trajectories=on)[-1] for on in (True, False))
    assert alike < 0.05 < weighed
