"""The long episode with networks: who climbs, what is paid, and when a run counts as arrived."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from critic_length import TURNS, Climb, Climbed, keys_of, reached

from colearn.testing import check_task


def after(state, ann, bob):
    return Climb().step(state, {"ann": ann, "bob": bob}, np.random.default_rng(0))


def test_progress_rises_only_if_both_answers_are_right():
    state = Climbed(turn=2, done=1, keys=("a2", "b2"))
    assert after(state, "left", " right").state.done == 2
    assert after(state, "left", "left").state.done == 1


def test_the_progress_is_paid_at_the_end_alone():
    assert after(Climbed(TURNS - 2, 5, ("a6", "a6")), "left", "left").reward == 0
    last = after(Climbed(TURNS - 1, 5, ("a7", "a7")), "left", "left")
    assert (last.reward, last.done) == (6, True)


def test_groups_of_an_item_share_their_first_keys():
    task = Climb()
    dealt = [task.reset(7, np.random.default_rng(seed)).keys for seed in range(8)]
    assert len(set(dealt)) == 1


def test_every_turn_has_keys_of_its_own():
    assert {key[1:] for key in keys_of(4, np.random.default_rng(1))} == {"4"}


def test_the_task_keeps_the_contract():
    check_task(Climb())


def test_a_run_arrives_before_the_two_iterations_whose_mean_share_is_at_the_goal():
    curve = [(128, 0.5), (256, 0.85), (384, 0.96), (512, 0.7)]
    assert reached({"curve": curve, "steps": 6400}) == 128
    assert reached({"curve": curve[:2], "steps": 6400}) == 6400
