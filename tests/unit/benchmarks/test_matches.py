"""Tallies, win matrices and Elo, by hand."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from colearn.contract.types import Action, Node, Observation, Tree
from colearn.errors import ConfigError
from colearn.rollout.agents.cast.seats import Against

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))

from game_optimum import optimum
from matches import add_percentages, elo, last_fault, tally, win_matrix

SEATS = ("player_0", "player_1")


def played(payoff, cast, *, fault=None, finish="end"):
    """One move by player_0 that ended the game."""
    metrics = {
        "payoff_player_0": payoff,
        "payoff_player_1": -payoff,
        "malformed": float(fault == "malformed"),
        "illegal": float(fault == "illegal"),
    }
    root = Node(
        index=0,
        parent=None,
        path=(),
        state=0,
        observations={"player_0": Observation("?", (1,))},
    )
    end = Node(
        index=1,
        parent=0,
        path=(0,),
        state=1,
        observations={},
        actions={"player_0": Action("!", (2,), (-1.0,), finish)},
        done=True,
        metrics=metrics,
    )
    return Tree(item="tic", episode=0, agents=SEATS, nodes=(root, end), cast=cast)


FIRST = {"player_0": "player_0", "player_1": "mcts"}
SECOND = {"player_0": "mcts", "player_1": "player_1"}


def test_a_players_games_are_counted_by_seat():
    trees = [played(1.0, FIRST), played(0.0, FIRST), played(-1.0, FIRST), played(1.0, FIRST)]
    trees.append(played(1.0, SECOND))
    first = tally(trees, "player_0", "player_0")
    assert (first.games, first.payoff) == (4, 0.25)
    assert (first.won, first.drawn, first.lost) == (0.5, 0.25, 0.25)
    assert first.error == pytest.approx(np.std([1, 0, -1, 1], ddof=1) / 2)
    assert tally(trees, "player_1", "player_1").lost == 1.0


def test_faults_are_those_of_the_player_that_made_them():
    trees = [
        played(-1.0, FIRST, fault="illegal"),
        played(-1.0, FIRST, fault="malformed"),
        played(-1.0, FIRST, fault="malformed", finish="length"),
        played(1.0, FIRST),
    ]
    quarter = {"malformed": 0.25, "illegal": 0.25, "truncated": 0.25}
    assert tally(trees, "player_0", "player_0").faults == quarter
    assert set(tally(trees, "mcts", "player_1").faults.values()) == {0.0}
    assert last_fault(trees[2]) == ("player_0", "truncated")


def test_nobody_is_tallied_where_it_never_sat():
    with pytest.raises(ValueError, match="mcts never sat in player_0"):
        tally([played(1.0, FIRST)], "mcts", "player_0")


def test_a_win_matrix_counts_a_pair_from_both_sides():
    matrix = win_matrix({("a", "b"): [1.0, 0.5], ("b", "a"): [1.0, 0.0]}, ["a", "b", "c"])
    assert matrix[0, 1] == pytest.approx((1.0 + 0.5 + 0.0 + 1.0) / 4)
    assert matrix[1, 0] == pytest.approx(1 - matrix[0, 1])
    assert np.isnan(matrix[0, 2]) and np.isnan(matrix[0, 0])


def test_elo_of_a_player_that_wins_three_of_four():
    """With the drawn game added, 75.5 of 101: 400 log10(75.5 / 25.5)."""
    ratings = elo({("a", "b"): [1.0] * 75 + [0.0] * 25}, ["a", "b"])
    assert ratings["a"] - ratings["b"] == pytest.approx(400 * np.log10(75.5 / 25.5), abs=0.1)
    assert sum(ratings.values()) == pytest.approx(0.0, abs=1e-9)


def test_elo_of_a_player_that_always_wins_is_finite():
    ratings = elo({("a", "b"): [1.0] * 10}, ["a", "b", "c"])
    assert ratings["a"] > ratings["c"] > ratings["b"] > -2000


def test_opponents_take_the_seats_in_turn():
    cast, players = Against(), (*SEATS, "mcts")
    rng = np.random.default_rng(0)
    assert [cast.seats("tic", e, SEATS, players, rng) for e in (0, 1)] == [FIRST, SECOND]


def test_a_share_of_the_episodes_is_self_play():
    cast, players = Against(self_play=0.25), (*SEATS, "mcts")
    rng = np.random.default_rng(0)
    casts = [cast.seats("tic", e, SEATS, players, rng) for e in range(800)]
    own = sum("mcts" not in seats.values() for seats in casts)
    assert abs(own / 800 - 0.25) < 3 * (0.25 * 0.75 / 800) ** 0.5


def test_a_match_without_an_opponent_is_refused():
    with pytest.raises(ConfigError, match="players: no opponent"):
        Against().seats("tic", 0, SEATS, SEATS, np.random.default_rng(0))


def row(payoff, optimum, seat="player_0", opponent="equilibrium"):
    return {
        "game": "kuhn_poker",
        "opponent": opponent,
        "seat": seat,
        "payoff": payoff,
        "optimum": optimum,
    }


def test_percentages_are_those_of_the_papers_figure_3():
    """Table 14's returns in Kuhn poker: Qwen3-4B, SPIRAL, the specialist and the generalist against
    the equilibrium, whose value is -1/18 for who moves first and 1/18 for the other."""
    first = [row(payoff, -1 / 18) for payoff in (-0.148, -0.301, -0.107, -0.114)]
    second = [row(payoff, 1 / 18, "player_1") for payoff in (-0.141, -0.149, -0.103)]
    rows = [*first, *second]
    add_percentages(rows)
    percentages = [round(one["normalised"], 1) for one in rows]
    assert percentages == [62.3, 0.0, 79.0, 76.2, 3.9, 0.0, 22.5]


def test_earlier_runs_count_as_observed_and_a_run_alone_has_no_percentage():
    """Qwen3-4B against search in Tic-Tac-Toe, where a fixed-opponent specialist had lost all."""
    alone = row(0.403, 1.0, opponent="mcts")
    add_percentages([alone])
    assert alone["normalised"] is None
    add_percentages([alone], [row(-1.0, 1.0, opponent="mcts"), row(-2.0, 1.0)])
    assert alone["normalised"] == pytest.approx(70.15)


def test_the_optimum_against_an_equilibrium_is_the_games_value():
    pytest.importorskip("pyspiel")
    assert optimum("kuhn_poker", "equilibrium", seat=0) == pytest.approx(-1 / 18)
    assert optimum("kuhn_poker", "equilibrium", seat=1) == pytest.approx(1 / 18)
    assert optimum("tic_tac_toe", "mcts", seat=1) == 1.0
