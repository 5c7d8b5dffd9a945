from itertools import pairwise

import numpy as np
import pytest
from tabular_models import dec_tiger, matrix_game, random_model, two_step, vault

from colearn.errors import ConfigError
from colearn.exact import histories as module
from colearn.exact.histories import JointHistories


def test_the_first_turn_has_one_history_with_the_start_belief():
    (turn,) = JointHistories(dec_tiger(), 1).turns
    assert turn.counts == (1, 1)
    assert turn.belief.tolist() == [[0.5, 0.5]]
    # listen, listen: -2 in both states; open-left, open-left: (-50 + 20) / 2
    assert turn.reward[0, [0, 4]].tolist() == [-2.0, -15.0]


def test_dec_tiger_has_36_joint_histories_for_each_of_the_turn_before():
    turns = JointHistories(dec_tiger(), 3).turns
    assert [len(turn.parent) for turn in turns] == [1, 36, 1296]
    assert turns[2].counts == (36, 36)


def test_private_histories_are_actions_and_observations_in_lexicographic_order():
    private = JointHistories(dec_tiger(), 2).private("bob")
    assert private == [[()], [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]]


def test_only_reachable_histories_are_kept():
    # the first action of alice decides what both see
    histories = JointHistories(two_step(), 2)
    assert len(histories.turns[1].parent) == 4
    assert histories.private("alice")[1] == [(0, 0), (1, 1)]
    assert histories.private("bob")[1] == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_a_long_horizon_is_cheap_where_little_is_ever_seen():
    # 32 action sequences times two keys for each agent
    turn = JointHistories(vault(), 6).turns[5]
    assert turn.counts == (64, 64)
    assert len(turn.parent) == 64 * 64


def test_a_belief_is_the_joint_probability_of_observations_and_state():
    histories = JointHistories(dec_tiger(), 2)
    turn = histories.turns[1]
    heard = (turn.joint_action == 0) & (turn.joint_observation == 0)
    # both listen and hear left: 0.5 * 0.85^2 and 0.5 * 0.15^2
    np.testing.assert_allclose(turn.belief[heard], [[0.36125, 0.01125]])
    np.testing.assert_allclose(turn.probability[heard], [0.3725])


def test_the_histories_after_a_joint_action_share_their_parents_probability():
    turns = JointHistories(random_model(3), 3).turns
    for before, turn in pairwise(turns):
        total = np.zeros_like(before.reward)
        np.add.at(total, (turn.parent, turn.joint_action), turn.probability)
        np.testing.assert_allclose(total, np.repeat(before.probability[:, None], 4, axis=1))


def test_the_joint_numbers_agree_with_the_private_histories():
    model = random_model(5, agents=3)
    histories = JointHistories(model, 2)
    turn = histories.turns[1]
    own = [histories.private(agent)[1] for agent in model.agents]
    for h in range(len(turn.parent)):
        pairs = [own[i][turn.private[i][h]] for i in range(3)]
        assert turn.joint_action[h] == model.joint_action(tuple(a for a, _ in pairs))
        assert turn.joint_observation[h] == model.joint_observation(tuple(o for _, o in pairs))


def test_the_expected_reward_is_weighed_by_the_belief():
    model = random_model(7)
    turn = JointHistories(model, 2).turns[1]
    by_hand = [
        [sum(b[s] * model.expected_reward[a, s] for s in range(3)) for a in range(4)]
        for b in turn.belief
    ]
    np.testing.assert_allclose(turn.reward, by_hand)


def test_one_agent_is_a_team_too():
    histories = JointHistories(matrix_game([1.0, 2.0, 4.0]), 2)
    assert histories.private("alice")[1] == [(0, 0), (1, 0), (2, 0)]


def test_no_horizon_leaves_nothing_to_build():
    with pytest.raises(ConfigError, match="horizon: 0"):
        JointHistories(dec_tiger(), 0)


def test_a_horizon_too_large_for_memory_is_refused_before_it_is_tried(monkeypatch):
    monkeypatch.setattr(module, "LIMIT", 10_000)
    with pytest.raises(ConfigError, match=r"horizon: .* turn 2 .* lower it to 2"):
        JointHistories(dec_tiger(), 3)
