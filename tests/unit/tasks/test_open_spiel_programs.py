"""Programs at the table: search and equilibrium policies."""

from __future__ import annotations

import numpy as np
import pytest

from colearn.contract import View
from colearn.errors import ConfigError
from colearn.registry import load
from colearn.tasks.open_spiel import Game, GameState, OpenSpiel
from colearn.tasks.open_spiel.programs import MCTS, Equilibrium, average_policy, kuhn_bet


def view(task, moves, seat, seed=0):
    name = task.items("train")[0].name
    state = GameState(game=Game(name), moves=moves, payoffs=(0.0, 0.0), faults=("", ""))
    return View(task=task, state=state, seat=seat, text="?", rng=np.random.default_rng(seed))


@pytest.mark.parametrize("prompt", ["full", "compact"])
def test_search_takes_the_win(prompt):
    """X holds 0 and 1 of the first row, O 3 and 4 of the second: both would win at once."""
    task = OpenSpiel(games="tic_tac_toe", prompt=prompt)
    said = MCTS(simulations=50).act(view(task, (0, 3, 1, 4), "player_0"))
    assert said == ("<answer><X(0,2)></answer>" if prompt == "full" else "r0c2")


def test_search_repeats_with_its_seed():
    task = OpenSpiel(games="tic_tac_toe", prompt="compact")
    drawn = [MCTS(simulations=5).act(view(task, (), "player_0", seed)) for seed in (1, 1, 2, 3, 4)]
    assert drawn[0] == drawn[1] and len(set(drawn)) > 1


def test_search_does_not_look_at_hidden_cards():
    task = OpenSpiel(games="kuhn_poker")
    with pytest.raises(ConfigError, match="mcts would look at hidden cards in 'kuhn_poker'"):
        MCTS().act(view(task, (0, 1), "player_0"))


@pytest.mark.parametrize("game", ["oshi_zumo", "cliff_walking"])
def test_search_needs_moves_in_turn_and_payoffs_at_the_end(game):
    task = OpenSpiel(games=game, prompt="compact")
    with pytest.raises(ConfigError, match=f"mcts needs moves in turn .* unlike '{game}'"):
        MCTS().act(view(task, (), "player_0"))


@pytest.mark.parametrize("alpha", [0.0, 0.2, 1 / 3])
def test_kuhns_closed_form_is_an_equilibrium(alpha):
    task = OpenSpiel(games="kuhn_poker")
    policy = {
        agent: {
            decision.key: (1 - kuhn_bet(decision.key, alpha), kuhn_bet(decision.key, alpha))
            for decision in task.decisions(agent)
        }
        for agent in task.agents
    }
    assert task.judge(policy)["nash_conv"] == pytest.approx(0.0, abs=1e-12)


def test_the_equilibrium_player_bets_as_often_as_its_policy_says():
    """player_0 with the Jack: a third of the time, within three deviations of 600 draws."""
    task = OpenSpiel(games="kuhn_poker", prompt="compact")
    drawn = [Equilibrium().act(view(task, (0, 1), "player_0", seed)) for seed in range(600)]
    assert abs(drawn.count("bet") / 600 - 1 / 3) < 3 * (2 / 9 / 600) ** 0.5


def test_cfr_comes_near_an_equilibrium():
    task = OpenSpiel(games="kuhn_poker")
    table = average_policy("kuhn_poker", 200)
    policy = {
        agent: {
            decision.key: [p for _, p in sorted(table.action_probabilities(decision.key).items())]
            for decision in task.decisions(agent)
        }
        for agent in task.agents
    }
    assert task.judge(policy)["nash_conv"] < 0.01


def test_a_game_without_a_closed_form_is_solved():
    task = OpenSpiel(games="kuhn_poker(players=3)", prompt="compact")
    name = task.items("train")[0].name
    state = GameState(game=Game(name), moves=(3, 0, 1), payoffs=(0.0,) * 3, faults=("",) * 3)
    asked = View(task=task, state=state, seat="player_0", text="?", rng=np.random.default_rng(0))
    assert Equilibrium(iterations=5).act(asked) in ("Pass", "Bet")


def test_programs_are_found_by_name():
    assert load("programs", "mcts") is MCTS
    assert load("programs", "equilibrium") is Equilibrium
