"""A league: who is in the pool, how hard each member is, who is drawn; by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from trees import chain

from colearn.errors import ConfigError
from colearn.rollout.agents.cast.league import League

SEATS = ("left", "right")
EVERYONE = (*SEATS, "left@0", "right@0", "left@1", "right@1")


def game(paid, cast):
    """One joint action that pays `paid` to left, the opposite to right."""
    tree = replace(chain([0.0], agents=SEATS), cast=cast)
    return tree.credited(({}, {"left": paid, "right": -paid}))


AGAINST_0 = {"right": "right@0"}
AGAINST_1 = {"left": "left@1"}


def league(*iterations, **settings):
    """After iterations, each a list of games."""
    league_cast = League(**{"pool": 2, "every": 1, "self_play": 0.0, "decay": 1.0} | settings)
    slots = [league_cast.settle(games) for games in iterations]
    return league_cast, slots


def seated(cast, count, *, players=EVERYONE):
    return [cast.seats("item", n, SEATS, players, np.random.default_rng(n)) for n in range(count)]


def test_all_play_themselves_until_there_is_a_past_self():
    assert seated(league()[0], 4) == [{"left": "left", "right": "right"}] * 4


def test_the_oldest_past_self_makes_place():
    _, slots = league([], [], [], every=1)
    assert slots == [0, 1, 0]
    _, slots = league(*[[]] * 6, every=2)
    assert slots == [None, 0, None, 1, None, 0]


def test_agents_keep_their_seat_in_turn_and_meet_the_past_self_of_the_other_seat():
    cast, _ = league([])
    assert seated(cast, 3) == [
        {"left": "left", "right": "right@0"},
        {"left": "left@0", "right": "right"},
        {"left": "left", "right": "right@0"},
    ]


def test_a_share_of_the_episodes_has_no_past_selves():
    cast, _ = league([], self_play=0.25)
    alone = sum(set(seats.values()) == set(SEATS) for seats in seated(cast, 2000))
    assert 0.22 < alone / 2000 < 0.28


def test_a_win_rate_counts_the_kept_agents_returns_with_a_win_and_a_loss_beforehand():
    played = League(pool=2, every=100, self_play=0.0, decay=1.0)
    played.restore({"iterations": 2.0, "taken": 2.0, **zeros(0), **zeros(1)})
    played.settle([game(1.0, AGAINST_0), game(0.0, AGAINST_0), game(1.0, AGAINST_1)])
    assert played.win_rate(0) == pytest.approx((1.0 + 0.5 + 1.0) / 4.0)
    assert played.win_rate(1) == pytest.approx(1.0 / 3.0), "right kept its seat, and lost"


def zeros(slot):
    return {f"games/{slot}": 0.0, f"score/{slot}": 0.0}


def after(score_0, score_1, **settings):
    """Eight games each, so that w is (score + 1) / 10."""
    cast = League(pool=2, every=100, self_play=0.0, **settings)
    cast.restore(
        {
            "iterations": 1.0,
            "taken": 2.0,
            "games/0": 8.0,
            "score/0": score_0,
            "games/1": 8.0,
            "score/1": score_1,
        }
    )
    return cast


@pytest.mark.parametrize(
    ("weigh", "first", "second"),
    [("hard", 0.1**2, 0.6**2), ("even", 0.9 * 0.1, 0.4 * 0.6), ("uniform", 1.0, 1.0)],
)
def test_slots_are_weighed_by_how_hard_they_are(weigh, first, second):
    cast = after(8.0, 3.0, weigh=weigh)  # w = 0.9 and 0.4
    assert cast.weight(0) == pytest.approx(first)
    assert cast.weight(1) == pytest.approx(second)
    drawn = sum(any("@0" in name for name in seats.values()) for seats in seated(cast, 3000))
    assert drawn / 3000 == pytest.approx(first / (first + second), abs=0.03)


def test_games_of_older_iterations_weigh_less():
    cast = after(8.0, 3.0, decay=0.5)
    cast.settle([])
    assert cast.win_rate(0) == pytest.approx((4.0 + 1.0) / (4.0 + 2.0))


def test_a_new_past_self_starts_without_games():
    cast = after(8.0, 3.0, decay=1.0)
    cast.restore({**cast.state(), "iterations": 99.0})
    assert cast.settle([]) == 0
    assert cast.win_rate(0) == 0.5
    assert cast.win_rate(1) == pytest.approx(0.4)


def test_a_restored_league_goes_on_as_the_first_would():
    one, _ = league([], [], [game(1.0, AGAINST_0)])
    other = League(pool=2, every=1, self_play=0.0, decay=1.0)
    other.restore(one.state())
    assert seated(other, 20) == seated(one, 20)
    assert other.settle([]) == one.settle([])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"pool": 0}, "pool: must be 1"),
        ({"every": 0}, "every: must be 1"),
        ({"self_play": 1.5}, "self_play: must lie"),
        ({"weigh": "best"}, "weigh: unknown"),
        ({"power": 0.0}, "power: must be above 0"),
    ],
)
def test_a_league_that_cannot_be_is_refused(settings, said):
    with pytest.raises(ConfigError, match=said):
        League(**settings)


@pytest.mark.parametrize(("kept", "rival"), [("left", "right"), ("right", "left")])
def test_a_draw_is_a_draw_whatever_valid_replies_are_paid(kept, rival):
    """Nine valid moves of a drawn Tic-Tac-Toe game, each paid 0.05: left has five of them."""
    drawn = chain([0.0] * 9, agents=SEATS)
    end = replace(drawn.nodes[-1], metrics={"payoff_left": 0.0, "payoff_right": 0.0})
    tree = replace(drawn, cast={rival: f"{rival}@0"}, nodes=(*drawn.nodes[:-1], end))
    paid = [{SEATS[k % 2]: 0.05} for k in range(9)]
    cast, _ = league([], every=2)
    cast.restore({"taken": 1.0, "games/0": 0.0, "score/0": 0.0, "iterations": 0.0})
    cast.settle([tree.credited(({}, *paid))])
    assert cast.state()["score/0"] == 0.5
    assert cast.win_rate(0) == 0.5


def test_a_game_that_was_won_is_won_whoever_was_paid_more_for_form():
    cast, _ = league([], every=2)
    cast.restore({"taken": 1.0, "games/0": 0.0, "score/0": 0.0, "iterations": 0.0})
    won = chain([0.0], agents=SEATS)
    end = replace(won.nodes[-1], metrics={"payoff_left": 1.0, "payoff_right": -1.0})
    tree = replace(won, cast=AGAINST_0, nodes=(won.nodes[0], end))
    cast.settle([tree.credited(({}, {"left": 1.0, "right": 2.0}))])
    assert cast.state()["score/0"] == 1.0


def test_a_game_that_was_truncated_is_no_draw():
    cast, _ = league([], every=2)
    cast.restore({"taken": 1.0, "games/0": 0.0, "score/0": 0.0, "iterations": 0.0})
    cut = chain([0.0], agents=SEATS, truncated={1: 3})
    end = replace(cut.nodes[-1], metrics={"payoff_left": 0.0, "payoff_right": 0.0})
    tree = replace(cut, cast=AGAINST_0, nodes=(cut.nodes[0], end))
    cast.settle([tree.credited(({}, {"left": 0.0, "right": 0.0}))])
    assert cast.state()["games/0"] == 0.0
