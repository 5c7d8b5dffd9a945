"""Private stakes with networks: what is earned, and when a curve counts as having arrived."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from stakes import Dealt, KnownParts, Stakes, interval, reached
from trees import chain

from colearn.contract.testing import check_task
from colearn.contract.types import Action


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


def answered(key, answer, others, stake="nine"):
    """One episode of a single agent, as updates have it: without the task's state."""
    root, after = chain([0.0], agents=("agent0",)).nodes
    said = [Action(text, (2,), (-1.0,)) for text in (answer, *others)]
    seen = replace(root.observations["agent0"], text=f"stake {stake} key {key}")
    root = replace(root, state=None, observations={"agent0": seen})
    after = replace(after, actions={"agent0": said[0]}, alternatives={"agent0": tuple(said[1:])})
    tree = replace(chain([0.0], agents=("agent0",)), nodes=(root, after))
    return tree.credited(({}, {}))


def test_known_parts_are_the_own_stake_less_what_the_further_answers_would_have_earned():
    # 9 (1 - 1/4) = 6.75 and 9 (0 - 3/4) = -6.75: normalised to 1 and -1
    right = answered("red", "left", ["right", "left", "right", "right"])
    wrong = answered("blue", " left", ["right", "left", "right", "right"])
    known = [tree[1]["agent0"] for tree in KnownParts()([right, wrong])]
    assert known == pytest.approx([1.0, -1.0], abs=1e-5)
    # with a stake of one 0 - 3/4: of 6.75, -6.75 and -0.75 the mean is -0.25, the variance 30.5
    small = answered("blue", "left", ["right", "left", "right", "right"], stake="one")
    known = [tree[1]["agent0"] for tree in KnownParts()([right, wrong, small])]
    assert known == pytest.approx([gap / 30.5**0.5 for gap in (7.0, -6.5, -0.5)], abs=1e-5)
