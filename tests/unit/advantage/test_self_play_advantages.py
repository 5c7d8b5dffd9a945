"""Advantages of self-play on one scripted batch of unequal lengths, against numbers by hand.

Players a and b move in turn. Each valid move pays 0.1; a wins the first game with its second move,
b the second game with its second:

    short   a 0.1   b 0.1   a 1.0 (b -1.0)
    long    a 0.1   b 0.1   a 0.1   b 1.0 (a -1.0)

so that a's turns return 1.1, 1.0 | -0.8, -0.9 and b's -0.9 | 1.1, 1.0.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from credited import credited
from scripted_games import LONG, LOST, SHORT, WON, cast, game
from trees import tree

from colearn.config import Config
from colearn.config.build import build_algorithm
from colearn.methods.advantage.self_play import RoleBaseline, SumThenNormalize, TurnByTurn
from colearn.methods.advantage.self_play_groups import own_turn, turn_rewards
from colearn.methods.credit.concise import Concise


def by_player(advantage, *episodes):
    """{player: its advantages, episode by episode and turn by turn}."""
    players = {"a": [], "b": []}
    for nodes in advantage(episodes):
        for node in nodes:
            for agent, value in node.items():
                players[agent].append(value)
    return players


@pytest.fixture
def batch():
    return game(SHORT), game(LONG)


def test_marshal_subtracts_the_mean_return_of_a_roles_turns(batch):
    """Means 0.1 of a's four turns and 0.4 of b's three."""
    advantages = by_player(SumThenNormalize(equal_trajectories=False), *batch)
    assert advantages["a"] == pytest.approx([1.0, 0.9, -0.9, -1.0])
    assert advantages["b"] == pytest.approx([-1.3, 0.7, 0.6])


def test_marshal_weighs_trajectories_alike(batch):
    """b's three actions in two trajectories: 3/2 for the game with one, 3/4 for each of the two."""
    advantages = by_player(SumThenNormalize(), *batch)
    assert advantages["a"] == pytest.approx([1.0, 0.9, -0.9, -1.0])
    assert advantages["b"] == pytest.approx([-1.95, 0.525, 0.45])


def test_games_of_two_items_are_weighed_apart():
    """Each game is one trajectory of its own group, so that every turn weighs 1: b's two turns of
    the longer one return 1.1 and 1.0."""
    advantages = by_player(SumThenNormalize(), game(SHORT, item="tic"), game(LONG, item="tac"))
    assert advantages["b"] == pytest.approx([0.0, 0.05, -0.05])


def test_marshal_divides_by_the_deviation_where_asked(batch):
    advantages = by_player(SumThenNormalize(normalize_std=True, equal_trajectories=False), *batch)
    assert advantages["a"] == pytest.approx(np.array([1.0, 0.9, -0.9, -1.0]) / 0.905**0.5, abs=1e-5)


def test_without_roles_all_turns_share_one_mean(batch):
    """1.6 over seven turns."""
    advantages = by_player(SumThenNormalize(by_role=False, equal_trajectories=False), *batch)
    mean = 1.6 / 7
    assert advantages["a"] == pytest.approx([1.1 - mean, 1.0 - mean, -0.8 - mean, -0.9 - mean])
    assert advantages["b"] == pytest.approx([-0.9 - mean, 1.1 - mean, 1.0 - mean])


def test_without_turns_every_turn_has_the_whole_return(batch):
    """a: 1.1 and -0.8 around 0.15; b: -0.9 and 1.1 around 0.1."""
    advantages = by_player(SumThenNormalize(turn_level=False, equal_trajectories=False), *batch)
    assert advantages["a"] == pytest.approx([0.95, 0.95, -0.95, -0.95])
    assert advantages["b"] == pytest.approx([-1.0, 1.0, 1.0])


def test_grpo_on_trajectories_standardises_all_of_them_together(batch):
    """1.1, -0.9, -0.8, 1.1: mean 0.125, variance 0.951875."""
    config = Config.model_validate(
        {"task": {"name": "open_spiel"}, "algorithm": {"name": "trajectory_grpo"}, "models": {}}
    )
    advantage = build_algorithm(config).parts().advantage
    advantages = by_player(advantage, *batch)
    spread = 0.951875**0.5
    seven, four = 7.0, 4.0
    weights = {"a": [seven / (four * 2)] * 4, "b": [seven / four] + [seven / (four * 2)] * 2}
    plain = {"a": [0.975, 0.975, -0.925, -0.925], "b": [-1.025, 0.975, 0.975]}
    for agent in ("a", "b"):
        expected = np.array(plain[agent]) * weights[agent] / spread
        assert advantages[agent] == pytest.approx(expected, abs=1e-5)


def test_mt_grpo_compares_a_turn_with_the_same_turn_of_others(batch):
    """a's first turns pay 0.1 each, its second 1.0 and -0.9: 0, then 1 and -1. b's first pay -0.9
    and 0.1: -1 and 1; its second turn stands alone and has none."""
    advantages = by_player(TurnByTurn(), *batch)
    assert advantages["a"] == pytest.approx([1.0, 1.0, -1.0, -1.0], abs=1e-4)
    assert advantages["b"] == pytest.approx([-1.0, 1.0, 0.0], abs=1e-4)


def test_mt_grpo_without_the_sum_is_the_turns_own_reward(batch):
    advantages = by_player(TurnByTurn(accumulate=False), *batch)
    assert advantages["a"] == pytest.approx([0.0, 1.0, 0.0, -1.0], abs=1e-4)


def test_spirals_baseline_moves_from_game_to_game(batch):
    """With decay 1/2: a's goes to 0.55 and -0.125, b's to -0.45 and 0.325."""
    advantages = by_player(RoleBaseline(decay=0.5), *batch)
    assert advantages["a"] == pytest.approx([0.55, 0.55, -0.675, -0.675])
    assert advantages["b"] == pytest.approx([-0.45, 0.775, 0.775])


def test_who_never_moved_leaves_its_baseline_as_it_is():
    """The first game ends with a's first move, for which b pays."""
    part = RoleBaseline(decay=0.5)
    advantages = by_player(part, game((("a", {"a": 1.0, "b": -1.0}),)), game(SHORT))
    assert advantages["b"] == pytest.approx([-0.45])


def test_spirals_baseline_goes_on_after_a_restart(batch):
    straight, first, second = (RoleBaseline(decay=0.5) for _ in range(3))
    straight([batch[0]])
    first([batch[0]])
    second.restore(first.state())
    assert straight([batch[1]]) == second([batch[1]])


def test_restored_baselines_replace_those_that_were_there(batch):
    part = RoleBaseline()
    part([batch[0]])
    part.restore({"'kuhn'/a": 2.0})
    assert part.state() == {"'kuhn'/a": 2.0}


def test_a_saved_baseline_does_not_move_with_later_games(batch):
    part = RoleBaseline(decay=0.5)
    part([batch[0]])
    saved = part.state()
    part([batch[1]])
    assert saved == pytest.approx({"'tic'/a": 0.55, "'tic'/b": -0.45})


def test_mt_grpo_without_roles_compares_all_players_kth_turns(batch):
    """First turns 0.1, 0.1, -0.9, 0.1: mean -0.15, variance 0.1875. Second turns 1.0, -0.9, 1.0:
    mean 11/30, variance 0.802222."""
    advantages = by_player(TurnByTurn(by_role=False, accumulate=False), *batch)
    first, second = 0.1875**0.5, (2.81 / 3 - (11 / 30) ** 2) ** 0.5
    assert advantages["a"] == pytest.approx(
        [0.25 / first, 19 / 30 / second, 0.25 / first, -38 / 30 / second], rel=1e-4
    )
    assert advantages["b"] == pytest.approx(
        [-0.75 / first, 0.25 / first, 19 / 30 / second], rel=1e-4
    )


def test_what_a_rivals_move_pays_is_discounted_once_for_the_turn_between():
    """a moves, then b does, which pays a 1: half of it is a's first turn's."""
    episode = replace(game([("a", {}), ("b", {"a": 1.0}), ("a", {"a": 4.0})]), discount=0.5)
    assert turn_rewards(episode, "a")[1:] == (0.5, 1.0, 4.0)


def test_a_players_own_turns_are_counted_from_zero():
    assert [own_turn(game(LONG), who, 1 + k) for k, (who, _) in enumerate(LONG)] == [0, 0, 1, 1]


def test_a_sum_of_turns_is_discounted_by_the_turns_of_all_players():
    """a moves at turns 0 and 2, so what its second move adds is a quarter at a discount of a half:
    its rewards there are 1 and 0, standardised 1 and -1."""
    episodes = [
        replace(game([("a", {}), ("b", {}), ("a", {"a": r})]), discount=0.5) for r in (1.0, 0.0)
    ]
    assert by_player(TurnByTurn(), *episodes)["a"] == pytest.approx(
        [0.25, 1.0, -0.25, -1.0], rel=1e-5
    )


FORK = [(0, 0.0), (0, 0.0), (1, 1.0), (2, 0.0)]
"""Two trajectories of one item, of which the first wins."""


def test_trajectories_of_one_item_are_compared_with_each_other():
    """Returns 1 and 0: mean 0.5, deviation 0.5. The tree's mean for both would teach nothing."""
    grpo = SumThenNormalize(turn_level=False, by_role=False, normalize_std=True)
    (advantages,) = grpo(credited([tree(FORK, agents=("a",))]))
    assert [at["a"] for at in advantages[1:]] == pytest.approx([1.0, -1.0, 1.0, -1.0], rel=1e-5)


def test_an_action_before_a_fork_has_the_mean_of_the_trajectories_behind_it():
    """R is 0.5 + 0.25 x 8 = 2.5 and 0.5 + 0.25 x 4 = 1.5 at a discount of a half."""
    forked = tree([(0, 0.5), (1, 0.0), (2, 8.0), (2, 4.0)], agents=("a",))
    (advantages,) = SumThenNormalize(turn_level=False)(credited([forked], 0.5))
    assert [at["a"] for at in advantages[1:]] == [0.0, 0.0, 0.5, -0.5]


def test_spirals_baseline_hears_of_every_trajectory_of_a_tree():
    """b: 0 -> 0.5 (of 1) -> 0.25 (of 0)."""
    (advantages,) = RoleBaseline(decay=0.5)(credited([tree(FORK, agents=("a",))]))
    assert [at["a"] for at in advantages[1:]] == [0.75, -0.25, 0.75, -0.25]


def test_games_are_groups_of_their_own():
    """The same payoffs ten times as large in another game leave the first one's as they were."""
    large = tuple((who, {a: 10 * r for a, r in pays.items()}) for who, pays in LONG)
    small = game(SHORT), game(LONG)
    both = by_player(SumThenNormalize(equal_trajectories=False), *small, game(large, item="kuhn"))
    assert both["a"][:4] == pytest.approx([1.0, 0.9, -0.9, -1.0])
    assert both["a"][4:] == pytest.approx([0.5, -0.5])


@pytest.mark.parametrize("by_role", [True, False])
def test_who_loses_to_a_rival_is_compared_with_its_own_games_alone(by_role):
    """Neither with what the rival won, nor with its games against itself."""
    lost = [cast(game(LOST), b="search"), cast(game(LOST), b="search")]
    advantages = by_player(
        SumThenNormalize(equal_trajectories=False, by_role=by_role), *lost, game(WON), game(LOST)
    )
    assert advantages["a"][:2] == [0.0, 0.0]
    assert advantages["b"][:2] == [0.0, 0.0]
    assert advantages["a"][2] > 0 > advantages["a"][-1]


def test_past_selves_and_programs_are_rivals_apart():
    episodes = cast(game(WON), b="b, of slot 0"), cast(game(LOST), b="search")
    advantages = by_player(SumThenNormalize(equal_trajectories=False), *episodes)
    assert advantages == {"a": [0.0, 0.0, 0.0], "b": [0.0, 0.0]}


def test_players_that_change_seats_are_no_rivals():
    """a sits in b's seat and b in a's: the seats are compared as before."""
    swapped = cast(game(LOST), a="b", b="a")
    advantages = by_player(SumThenNormalize(equal_trajectories=False), game(WON), swapped)
    assert advantages["a"] == pytest.approx([2 / 3, 2 / 3, -4 / 3])


def test_a_rival_in_a_seat_is_weighed_apart_from_the_seats_own_player():
    part = SumThenNormalize()
    own, rival = game(WON), cast(game(WON), b="search")
    assert part.weight_group(own, "b") == part.weight_group(cast(game(WON), b="a"), "b")
    assert part.weight_group(own, "a") == part.weight_group(rival, "a")
    assert part.weight_group(own, "b") != part.weight_group(rival, "b")


@pytest.mark.parametrize(
    "advantage",
    [
        SumThenNormalize(),
        SumThenNormalize(turn_level=False),
        SumThenNormalize(by_role=False),
        RoleBaseline(),
    ],
    ids=lambda advantage: f"{advantage}",
)
def test_in_a_zero_sum_batch_an_advantage_has_the_sign_of_its_players_payoff(advantage):
    advantages = by_player(advantage, game(WON), game(LOST))
    assert [np.sign(value) for value in advantages["a"]] == [1, 1, -1]
    assert [np.sign(value) for value in advantages["b"]] == [-1, 1]


def test_mt_grpo_keeps_the_sign_but_where_a_turn_stands_alone():
    """a's second turn has nobody to compare with, MARSHAL's objection to it."""
    advantages = by_player(TurnByTurn(), game(WON), game(LOST))
    assert [np.sign(value) for value in advantages["a"]] == [1, 0, -1]
    assert [np.sign(value) for value in advantages["b"]] == [-1, 1]


@pytest.mark.parametrize(
    ("tokens", "reward"), [(1, 0.5 * (1 + 10 / 2037)), (11, 0.5), (2048, 0.0), (4085, 0.0)]
)
def test_a_short_reply_earns_what_eq_4_says(tokens, reward):
    """Below l_min the line goes on, beyond l_max it is cut."""
    assert Concise().reward(tokens) == pytest.approx(reward)


def test_the_reward_for_short_replies_goes_to_who_spoke():
    episode = game(SHORT, tokens={1: 11, 2: 2048, 3: 4096})
    rewards = Concise()(episode)
    assert rewards[1] == pytest.approx({"a": 0.6, "b": 0.0})
    assert rewards[2] == pytest.approx({"a": 0.0, "b": 0.1})
    assert rewards[3] == pytest.approx({"a": 1.0, "b": -1.0})
