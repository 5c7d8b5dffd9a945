from itertools import product
from pathlib import Path

import numpy as np
import pytest
from tabular_models import climbing, dec_tiger, matrix_game, penalty, random_model, two_step, vault

from colearn.errors import ConfigError
from colearn.exact import _search_bound, _search_rules
from colearn.exact.exact_value import evaluate
from colearn.exact.histories import JointHistories
from colearn.exact.reader import read_dpomdp
from colearn.exact.search import best_joint_policy

PROBLEMS = Path(__file__).parents[3] / "benchmarks" / "problems"
TOLD = {
    "history": lambda known, o: (*known, o),
    "memoryless": lambda known, o: (o,),
    "open_loop": lambda known, o: (),
}


def brute_force(model, horizon, information, discount=1.0, weights=None):
    """The best value over all joint rules of all turns, tried one after the other.

    `weights` maps what each agent knows to P(s, that), as a dictionary of vectors.
    """
    weights = {((),) * len(model.agents): model.start} if weights is None else weights
    spaces = []
    for i, count in enumerate(model.action_shape):
        known = sorted({key[i] for key in weights})
        choices = product(range(count), repeat=len(known))
        spaces.append([dict(zip(known, choice, strict=True)) for choice in choices])
    best = -np.inf
    for rules in product(*spaces):
        chosen = [
            (key, model.joint_action(tuple(r[k] for r, k in zip(rules, key, strict=True))), weight)
            for key, weight in weights.items()
        ]
        total = sum(model.expected_reward[a] @ weight for _, a, weight in chosen)
        if horizon > 1:
            after = {}
            for key, a, weight in chosen:
                for seen in np.ndindex(*model.observation_shape):
                    joint = model.observation[a, :, model.joint_observation(seen)]
                    further = (weight @ model.transition[a]) * joint
                    told = tuple(map(TOLD[information], key, seen))
                    if further.any():
                        after[told] = after.get(told, 0.0) + further
            total += discount * brute_force(model, horizon - 1, information, discount, after)
        best = max(best, total)
    return best


# --- known values ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("horizon", "value"), [(1, -2.0), (2, -4.0), (3, 5.1908), (4, 4.8028), (5, 7.0265)]
)
def test_the_optimum_of_dec_tiger_is_the_published_one(horizon, value):
    assert best_joint_policy(dec_tiger(), horizon).value == pytest.approx(value, abs=5e-5)


@pytest.mark.parametrize(
    ("name", "horizon", "value"),
    [
        ("broadcast", 3, 2.99),
        ("broadcast", 4, 3.89),
        ("recycling", 3, 10.660125),
        ("recycling", 4, 13.38),
        ("grid_small", 3, 1.550444),
        ("grid_small", 4, 2.241577),
        ("fire_fighting", 3, -5.736969),
        ("box_pushing", 2, 17.6),
        ("box_pushing", 3, 66.081),
    ],
)
def test_the_optimum_of_a_classic_file_is_the_published_one(name, horizon, value):
    model = read_dpomdp(PROBLEMS / f"{name}.dpomdp")
    assert best_joint_policy(model, horizon).value == pytest.approx(value, abs=2e-4)


@pytest.mark.parametrize("information", ["history", "memoryless", "open_loop"])
def test_the_matrix_games_and_the_two_step_game_need_no_observation(information):
    assert best_joint_policy(climbing(), 1, information=information).value == 11.0
    assert best_joint_policy(penalty(), 1, information=information).value == 10.0
    assert best_joint_policy(two_step(), 2, information=information).value == 8.0


@pytest.mark.parametrize(
    ("information", "value"), [("history", 10.0), ("memoryless", 5.0), ("open_loop", 2.5)]
)
def test_the_vault_opens_to_agents_who_remember_their_key(information, value):
    # the key seen last turn gives one notch; two of the four blind turns for each of two key pairs
    # then make three in half the cases. Blind from the start, three of five turns serve one pair
    solution = best_joint_policy(vault(), 6, information=information)
    assert solution.value == pytest.approx(value, abs=1e-12)


def test_the_optimal_rule_of_dec_tiger_opens_after_hearing_the_same_side_twice():
    policy = best_joint_policy(dec_tiger(), 3).policy
    for agent in ("alice", "bob"):
        assert policy[agent][:2] == ({(): 0}, {(0,): 0, (1,): 0})
        assert policy[agent][2] == {(0, 0): 2, (0, 1): 0, (1, 0): 0, (1, 1): 1}


# --- against other computations ----------------------------------------------------------------


@pytest.mark.parametrize("horizon", [1, 2])
@pytest.mark.parametrize("information", ["memoryless", "open_loop"])
def test_less_information_in_dec_tiger_agrees_with_brute_force(information, horizon):
    solution = best_joint_policy(dec_tiger(), horizon, information=information)
    assert solution.value == pytest.approx(brute_force(dec_tiger(), horizon, information), abs=1e-9)


@pytest.mark.parametrize("information", ["history", "memoryless", "open_loop"])
@pytest.mark.parametrize(("agents", "horizon"), [(1, 3), (2, 2), (3, 2)])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_problems_agree_with_brute_force(information, agents, horizon, seed):
    model = random_model(seed, agents=agents)
    solution = best_joint_policy(model, horizon, information=information, discount=0.9)
    expected = brute_force(model, horizon, information, 0.9)
    assert solution.value == pytest.approx(expected, abs=1e-9)


KEYS = {
    "history": lambda observations: observations,
    "memoryless": lambda observations: observations[-1:],
    "open_loop": lambda observations: (),
}
"""What the rules of a policy ask, of the observations of a history."""


def table(rules, known_by_turn, actions, information):
    """An agent's rules as probabilities by private history; action 0 at those never reached."""
    return [
        np.eye(actions)[[rule.get(KEYS[information](history[1::2]), 0) for history in known]]
        for rule, known in zip(rules, known_by_turn, strict=True)
    ]


@pytest.mark.parametrize("information", ["history", "memoryless", "open_loop"])
@pytest.mark.parametrize(
    ("model", "horizon"), [(dec_tiger(), 3), (vault(), 6), (random_model(7, agents=3), 2)]
)
def test_the_value_of_the_best_policy_is_that_of_the_solution(information, model, horizon):
    solution = best_joint_policy(model, horizon, information=information, discount=0.95)
    histories = JointHistories(model, horizon)
    policy = {
        agent: table(solution.policy[agent], histories.private(agent), count, information)
        for agent, count in zip(model.agents, model.action_shape, strict=True)
    }
    value = evaluate(histories, policy, discount=0.95).value
    assert value == pytest.approx(solution.value, abs=1e-9)


def test_the_optimum_does_not_depend_on_the_size_of_the_chunks(monkeypatch):
    monkeypatch.setattr(_search_rules, "CHUNK", 1)
    assert best_joint_policy(dec_tiger(), 3).value == pytest.approx(5.1908125, abs=1e-9)


def test_the_optimum_does_not_depend_on_how_tight_the_bound_is(monkeypatch):
    tight = best_joint_policy(dec_tiger(), 4)
    monkeypatch.setattr(_search_bound, "MOST_BELIEFS", 0)
    loose = best_joint_policy(dec_tiger(), 4)
    assert loose.value == pytest.approx(tight.value, abs=1e-9)
    assert loose.nodes >= tight.nodes


@pytest.mark.parametrize("seed", [11, 13])
def test_the_bound_is_never_below_the_best_joint_policy(seed):
    model = random_model(seed)
    bound = _search_bound.POMDPBound(model, 3, 0.9)
    highest = bound.action_values(model.start[None], 3).max()
    assert highest >= best_joint_policy(model, 3, discount=0.9).value


# --- bad input ---------------------------------------------------------------------------------


def test_a_search_over_the_node_limit_is_refused():
    with pytest.raises(ConfigError, match="horizon: 5 is too large for an exact search"):
        best_joint_policy(dec_tiger(), 5, limit=50)


def test_rules_tried_within_a_node_count_too(monkeypatch):
    # 60 x 60 x 60 joint actions in a single node
    game = np.random.default_rng(17).uniform(size=(60, 60, 60))
    monkeypatch.setattr("colearn.exact.search.RULES_PER_NODE", 1)
    with pytest.raises(ConfigError, match=r"exact search \(more than 5 nodes\)"):
        best_joint_policy(matrix_game(game), 1, limit=5)


def test_information_and_horizon_are_checked():
    with pytest.raises(ConfigError, match="did you mean 'history'"):
        best_joint_policy(climbing(), 1, information="histories")
    with pytest.raises(ConfigError, match="horizon: 0"):
        best_joint_policy(climbing(), 0)
