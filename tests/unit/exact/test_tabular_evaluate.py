import numpy as np
import pytest
from tabular_models import climbing, dec_tiger, matrix_game, random_model, two_step

from colearn.errors import ConfigError
from colearn.exact.exact_value import evaluate, uniform
from colearn.exact.histories import JointHistories

REJECTED = (-1.5, 0.5, 2.0)


def random_policy(histories, seed, mass=1.0):
    """Random rows that sum to `mass`."""
    rng = np.random.default_rng(seed)
    return {
        agent: [mass * rng.dirichlet(np.ones(row.shape[1]), size=len(row)) for row in rows]
        for agent, rows in uniform(histories).items()
    }


def always(histories, action):
    rows = uniform(histories)
    return {a: [np.eye(r.shape[1])[[action] * len(r)] for r in rows[a]] for a in rows}


# --- by hand -----------------------------------------------------------------------------------


def test_uniform_play_of_climbing_is_the_mean_of_its_matrix():
    histories = JointHistories(climbing(), 1)
    assert evaluate(histories, uniform(histories)).value == pytest.approx(-31 / 9, abs=1e-12)


def test_the_private_values_and_gradient_of_climbing_are_row_means():
    histories = JointHistories(climbing(), 1)
    exact = evaluate(histories, uniform(histories))
    assert exact.private_values["bob"][0] == pytest.approx(-31 / 9)
    np.testing.assert_allclose(exact.gradient["alice"][0], [[-19 / 3, -17 / 3, 5 / 3]])
    np.testing.assert_allclose(exact.gradient["bob"][0], [[-19 / 3, -23 / 3, 11 / 3]])


def test_the_two_step_game_by_hand():
    histories = JointHistories(two_step(), 2)
    exact = evaluate(histories, uniform(histories), discount=0.5)
    # turn 1: 7 in the safe game, (0 + 1 + 1 + 8) / 4 in the risky one
    assert exact.joint_values[1].tolist() == [7.0, 7.0, 2.5, 2.5]
    assert exact.joint_action_values[1][2].tolist() == [0.0, 1.0, 1.0, 8.0]
    assert exact.joint_action_values[0].tolist() == [[3.5, 3.5, 1.25, 1.25]]
    assert exact.value == 2.375
    assert exact.private_values["alice"][1].tolist() == [7.0, 2.5]
    # alice first in the risky game: discounted 0.5, played 0.5 of the time, (0 + 1) / 2
    np.testing.assert_allclose(exact.gradient["alice"][1], [[1.75, 1.75], [0.125, 1.125]])


def test_listening_three_times_costs_six():
    histories = JointHistories(dec_tiger(), 3)
    assert evaluate(histories, always(histories, 0)).value == pytest.approx(-6.0, abs=1e-12)


def test_uniform_play_of_dec_tiger_for_one_turn():
    histories = JointHistories(dec_tiger(), 1)
    # per state: -2 - 101 + 9 - 101 - 50 - 100 + 9 - 100 + 20 over nine joint actions
    exact = evaluate(histories, uniform(histories))
    assert exact.value == pytest.approx(-416 / 9, abs=1e-12)


def test_a_private_history_that_is_never_reached_has_no_value():
    histories = JointHistories(dec_tiger(), 2)
    exact = evaluate(histories, always(histories, 0))
    values = exact.private_values["alice"][1]
    assert np.isnan(values).tolist() == [False, False, True, True, True, True]
    np.testing.assert_allclose(values[:2], -2.0)


def test_one_rejected_reply_ends_the_episode_with_the_reward_of_its_turn():
    histories = JointHistories(matrix_game([[4.0]]), 2)
    policy = {"alice": [np.array([[0.5]])] * 2, "bob": [np.array([[0.75]])] * 2}
    exact = evaluate(histories, policy, rejected=[-1.0, -3.0], discount=0.5)
    # both accepted with 3/8: turn 1 is worth 3/8 * 4 - 5/8 * 3, and turn 0 3/8 (4 + that / 2) - 5/8
    assert exact.joint_values[1].tolist() == [-0.375]
    assert exact.value == pytest.approx(0.375 * 3.8125 - 0.625)
    assert [p.tolist() for p in exact.joint_probabilities] == [[1.0], [0.375]]
    # 3/4 of the time bob accepts: 3.8125 instead of the -1 that is given up
    np.testing.assert_allclose(exact.gradient["alice"][0], [[0.75 * 4.8125]])


# --- against other computations ----------------------------------------------------------------


def recursion(model, horizon, policy, numbers, turn=0, belief=None, own=None, seen=(), out=None):
    """V(h) of every joint history (its actions and observations) by plain recursion."""
    belief = list(model.start) if belief is None else belief
    own = [()] * len(model.agents) if own is None else own
    value = 0.0
    for joint in np.ndindex(*model.action_shape):
        a = model.joint_action(joint)
        chance = 1.0
        for i, agent in enumerate(model.agents):
            chance *= policy[agent][turn][numbers[agent][turn][own[i]], joint[i]]
        q = sum(b * model.expected_reward[a, s] for s, b in enumerate(belief))
        for seeing in np.ndindex(*model.observation_shape):
            if turn + 1 == horizon:
                break
            o = model.joint_observation(seeing)
            after = [
                sum(b * model.transition[a, s, to] for s, b in enumerate(belief))
                * model.observation[a, to, o]
                for to in range(len(belief))
            ]
            if (p := sum(after)) > 0.0:
                theirs = [(*own[i], joint[i], seeing[i]) for i in range(len(own))]
                normal = [b / p for b in after]
                further = (turn + 1, normal, theirs, (*seen, (a, o)), out)
                q += p * recursion(model, horizon, policy, numbers, *further)
        value += chance * q
    out[seen] = value
    return value


def test_joint_values_agree_with_a_plain_recursion():
    model, horizon = dec_tiger(), 2
    histories = JointHistories(model, horizon)
    policy = random_policy(histories, 11)
    numbers = {
        agent: [{h: k for k, h in enumerate(turn)} for turn in histories.private(agent)]
        for agent in model.agents
    }
    by_hand = {}
    recursion(model, horizon, policy, numbers, out=by_hand)
    turn = histories.turns[1]
    keys = zip(turn.joint_action.tolist(), turn.joint_observation.tolist(), strict=True)
    expected = [by_hand[(key,)] for key in keys]
    exact = evaluate(histories, policy)
    np.testing.assert_allclose(exact.joint_values[1], expected, rtol=1e-12)
    np.testing.assert_allclose(exact.value, by_hand[()], rtol=1e-12)


@pytest.mark.parametrize("agents", [1, 2, 3])
def test_the_gradient_agrees_with_central_differences(agents):
    histories = JointHistories(random_model(13, agents=agents), 3 if agents < 3 else 2)
    policy = random_policy(histories, 17, mass=0.8)
    options = {"discount": 0.9, "rejected": REJECTED[: histories.horizon]}
    gradient = evaluate(histories, policy, **options).gradient
    step = 1e-4
    for agent, rows in policy.items():
        for t, row in enumerate(rows):
            numeric = np.zeros_like(row)
            for place in np.ndindex(*row.shape):
                kept = row[place]
                row[place] = kept + step
                above = evaluate(histories, policy, **options).value
                row[place] = kept - step
                below = evaluate(histories, policy, **options).value
                row[place] = kept
                numeric[place] = (above - below) / (2 * step)
            # J is linear in a single probability, so only rounding separates the two
            np.testing.assert_allclose(gradient[agent][t], numeric, rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("agents", [1, 2, 3])
def test_private_values_average_to_the_share_of_the_value_still_to_come(agents):
    histories = JointHistories(random_model(19, agents=agents), 2)
    exact = evaluate(histories, random_policy(histories, 23, mass=0.9))
    for i, agent in enumerate(histories.model.agents):
        for t, turn in enumerate(histories.turns):
            reached = np.bincount(turn.private[i], weights=exact.joint_probabilities[t])
            total = exact.joint_probabilities[t] @ exact.joint_values[t]
            assert reached @ exact.private_values[agent][t] == pytest.approx(total)


def test_a_turn_is_played_as_often_as_all_replies_before_it_were_accepted():
    histories = JointHistories(random_model(29), 3)
    exact = evaluate(histories, random_policy(histories, 31, mass=0.9))
    sums = [p.sum() for p in exact.joint_probabilities]
    np.testing.assert_allclose(sums, [1.0, 0.9**2, 0.9**4])


def test_the_value_agrees_with_simulated_episodes():
    model, horizon, discount, episodes = random_model(37), 3, 0.9, 20_000
    histories = JointHistories(model, horizon)
    policy = random_policy(histories, 41, mass=0.85)
    numbers = [
        [{h: k for k, h in enumerate(turn)} for turn in histories.private(agent)]
        for agent in model.agents
    ]
    rng = np.random.default_rng(43)

    def draw(weights):
        return int(np.searchsorted(np.cumsum(weights), rng.random(), side="right"))

    def episode():
        state, own, total = draw(model.start), [(), ()], 0.0
        for t in range(horizon):
            joint = []
            for i, agent in enumerate(model.agents):
                joint.append(draw(policy[agent][t][numbers[i][t][own[i]]]))
            if max(joint) == 2:
                return total + discount**t * REJECTED[t]
            a = model.joint_action(tuple(joint))
            after = draw(model.transition[a, state])
            o = draw(model.observation[a, after])
            total += discount**t * model.reward[a, state, after, o]
            state = after
            own = [(*own[i], joint[i], (o // 2, o % 2)[i]) for i in range(2)]
        return total

    returns = np.array([episode() for _ in range(episodes)])
    error = returns.std(ddof=1) / np.sqrt(episodes)
    value = evaluate(histories, policy, discount=discount, rejected=REJECTED).value
    assert abs(returns.mean() - value) < 4 * error


# --- bad input ---------------------------------------------------------------------------------


def test_a_policy_that_does_not_fit_is_refused():
    histories = JointHistories(climbing(), 1)
    good = uniform(histories)
    with pytest.raises(ConfigError, match="one for each of"):
        evaluate(histories, {"alice": good["alice"]})
    with pytest.raises(ConfigError, match="alice has 0 turns; give 1"):
        evaluate(histories, {**good, "alice": []})
    with pytest.raises(ConfigError, match=r"bob's turn 0 has shape \(1, 2\); give \(1, 3\)"):
        evaluate(histories, {**good, "bob": [np.full((1, 2), 0.5)]})
    with pytest.raises(ConfigError, match="not a distribution"):
        evaluate(histories, {**good, "bob": [np.full((1, 3), 0.5)]})


def test_rejected_rewards_are_given_for_every_turn():
    histories = JointHistories(two_step(), 2)
    with pytest.raises(ConfigError, match="rejected: 1 rewards for 2 turns"):
        evaluate(histories, uniform(histories), rejected=[0.0])
