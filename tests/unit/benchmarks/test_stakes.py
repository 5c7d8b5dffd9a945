"""Private stakes with networks: what is earned, and when a curve counts as having arrived."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from stakes import Dealt, Stakes, interval, reached

from colearn.testing import check_task


def test_the_team_earns_the_stakes_of_those_who_are_right():
    task = Stakes(3)
    dealt = Dealt(stakes=("nine", "one", "nine"), keys=("red", "blue", "blue"))
    actions = {"agent0": "left", "agent1": " right", "agent2": "left"}
    outcome = task.step(dealt, actions, np.random.default_rng(0))
    assert outcome.reward == 9 + 1
    assert task.metrics(outcome.state) == {"share": pytest.approx(10 / 15)}


def test_an_agent_sees_its_own_stake_and_key_alone():
    dealt = Dealt(stakes=("nine", "one"), keys=("red", "blue"))
    assert Stakes(2).observe(dealt, "agent1") == "stake one key blue"


def test_the_task_keeps_the_contract():
    check_task(Stakes(4))


def test_a_curve_arrives_with_the_first_of_two_evaluations_in_a_row():
    curve = [(0, 0.5), (64, 0.91), (128, 0.89), (192, 0.9), (256, 0.95)]
    assert reached(curve, 0.9) == 192
    assert reached(curve[:4], 0.9) is None


def test_an_interval_is_students():
    # mean 2, standard error 1 / sqrt(3), quantile 4.3027
    assert interval([1.0, 2.0, 3.0]) == "2.00 [-0.48, 4.48]"
    assert interval([1.0]) == "1.00"
