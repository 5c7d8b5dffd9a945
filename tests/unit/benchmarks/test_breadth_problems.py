"""The further problems are what their definitions say, by published or hand-computed optima."""

import sys
from pathlib import Path

import pytest

from colearn.tabular.reader import parse_dpomdp
from colearn.tabular.search import best_joint_policy

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from _breadth_problems import BREADTH
from breadth import write_problem


def optimum(name, horizon):
    return best_joint_policy(parse_dpomdp(BREADTH[name].make().text(), name), horizon).value


@pytest.mark.parametrize(("horizon", "value"), [(2, 2.0), (3, 2.99), (4, 3.89)])
def test_the_broadcast_channel_has_the_published_optimum(horizon, value):
    assert optimum("broadcast", horizon) == pytest.approx(value)


def test_fire_fighting_is_within_rounding_of_the_published_optimum():
    assert optimum("fire_fighting", 3) == pytest.approx(-5.737, abs=5e-4)


def test_a_lamp_misread_one_time_in_ten_is_worth_nine():
    assert optimum("noisy_lamp", 3) == pytest.approx(9.0)


def test_three_of_four_voters_are_right_with_probability_0_6517():
    # 4 * 0.7^3 * 0.3 + 0.7^4
    assert optimum("quorum", 2) == pytest.approx(6.517)


def test_a_message_passes_through_two_agents():
    assert optimum("relay", 4) == pytest.approx(10.0)


def test_a_rejected_reply_earns_no_more_than_a_wrong_guess(tmp_path):
    # uniform play less the way to the optimum would be 4.69 - 2.81 = 1.88
    problem, _ = write_problem("treasure", tmp_path)
    assert problem.penalty == pytest.approx(0.0)


def test_a_rejected_reply_earns_the_worst_reward_in_every_turn(tmp_path):
    problem, _ = write_problem("recycling", tmp_path)
    assert problem.penalty == pytest.approx(3 * -10.0)
