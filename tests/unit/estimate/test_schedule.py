"""The simulated schedule, against times added up by hand."""

import pytest

from colearn.estimate.schedule import free, lockstep, simulate


def test_without_staleness_everything_takes_its_turn():
    one = simulate([3, 4, 5], [1, 1, 2], transfer=0.5)
    assert one.ends == (4.5, 10.0, 17.5)
    assert one.seconds == 6.5  # (17.5 - 4.5) / 2
    assert (one.generating, one.updating, one.transferring) == (12, 4, 1.5)
    assert one.bottleneck == "generation"


def test_one_update_ahead_hides_the_shorter_part():
    # rollouts 0-3 and 3-6; the update of 0 takes 3-5, waits for the rollout until 6, transfer 7;
    # rollout 7-10 beside the update 7-9, transfer 11; rollout 11-14 beside the update 11-13, 15
    one = simulate([3, 3, 3, 3, 3], [2, 2, 2, 2], transfer=1, staleness=1)
    assert one.ends == (7, 11, 15, 19)
    assert one.seconds == 4
    # nothing is in flight beside the last update
    assert simulate([3, 3, 3, 3], [2, 2, 2, 2], transfer=1, staleness=1).ends == (7, 11, 15, 18)
    # updates that take longer: 3-8, transfer 9, 9-14, transfer 15
    assert simulate([3, 3, 3], [5, 5, 5], transfer=1, staleness=1).ends == (9, 15, 21)


def test_two_updates_ahead_transfer_half_as_often():
    # rollouts 0-1, 1-2 and 2-3; the update of 0 takes 1-3, that of 1 ends at 5 and is published at
    # 6, when rollouts 3 and 4 begin; update 2 ends at 8
    one = simulate([1, 1, 1, 1], [2, 2, 2, 2], transfer=1, staleness=2)
    assert one.ends == (3, 6, 8, 11)
    assert one.transferring == 2


def test_an_update_within_a_block_waits_for_its_own_rollout_only():
    # rollouts 0-3, 3-6 and 6-9; update 0 takes 3-5, update 1 6-8, transfer after the third rollout
    # 9-10; rollouts 10-13 and 13-16; update 2 takes 10-12, update 3 13-15, transfer 16-17
    one = simulate([3, 3, 3, 3, 3], [2, 2, 2, 2], transfer=1, staleness=2)
    assert one.ends == (5, 10, 12, 17)


def test_a_straggler_holds_up_the_turn_in_lockstep_and_the_episode_freely():
    answers = [[1.0, 1.0], [4.0, 1.0], [1.0, 3.0], [2.0]]
    assert lockstep(answers) == 7.0  # 4 + 3
    assert free(answers) == 5.0
    assert lockstep([]) == free([]) == 0.0


def test_too_few_iterations_are_an_error():
    with pytest.raises(ValueError, match="two or more"):
        simulate([1], [1])
    with pytest.raises(ValueError, match="two or more"):
        simulate([1], [1, 2])
