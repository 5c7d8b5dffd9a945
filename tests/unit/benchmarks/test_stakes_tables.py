"""The noise of one agent's gradient by hand, and what a critic takes from it in a team."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from stakes_tables import Game, joint_actions_to, predicted, share

ALONE = Game(agents=1, stakes=(1.0, 9.0), batch=8)


def test_the_noise_of_one_agent_without_a_baseline_is_seven_gradients():
    # by context: E g = s / 16, E g^2 = s^2 / 32; (2 * 82 / 32) / (2 * 82 / 256) - 1 = 7
    assert predicted(ALONE, "none") == pytest.approx(7.0, rel=0.02)


def test_the_value_of_the_history_leaves_three_gradients_of_noise():
    # E g^2 = s^2 / 64: (2 * 82 / 64) / (2 * 82 / 256) - 1 = 3
    assert predicted(ALONE, "collm_cc") == pytest.approx(3.0, rel=0.02)


def test_the_counterfactual_baseline_takes_out_all_that_others_earn():
    small, large = (predicted(Game(n, (1.0, 9.0), 8), "coma") for n in (2, 8))
    assert large == pytest.approx(small, rel=0.03)


def test_uniform_play_earns_half():
    assert share(ALONE, np.zeros((1, 1, 4))).tolist() == [0.5]


def test_a_linear_critic_of_everything_explains_the_reward():
    _, explained = joint_actions_to(
        Game(2, (1.0, 9.0), 8), "coma", "linear, pretrained", 0.01, 4, 0, False, 1_000
    )
    assert explained > 0.99
