"""Theoretical optima of OpenSpiel's games, the normalisation of MARSHAL's Figure 3."""

from __future__ import annotations

from typing import Any

from colearn.tasks.open_spiel.games import cooperative, load
from colearn.tasks.open_spiel.programs import Equilibrium


def optimum(name: str, opponent: str, *, seat: int) -> float:
    """The most that a player can expect in a seat: against an equilibrium the game's value, else
    the most that the game pays."""
    game = load(name)
    if opponent != "equilibrium" or cooperative(game):
        return float(game.max_utility())
    return _value(game.new_initial_state(), name, Equilibrium())[seat]


def _value(at: Any, name: str, policy: Equilibrium) -> list[float]:
    """Both seats' expected payoffs where both play the policy."""
    if at.is_terminal():
        return [float(payoff) for payoff in at.returns()]
    if at.is_chance_node():
        chances = dict(at.chance_outcomes())
    else:
        chances = policy.policy(name, at, at.current_player())
    values = [0.0] * at.num_players()
    for action, chance in chances.items():
        if chance:
            ahead = _value(at.child(action), name, policy)
            values = [
                value + chance * further for value, further in zip(values, ahead, strict=True)
            ]
    return values
