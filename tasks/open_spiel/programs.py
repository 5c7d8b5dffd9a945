"""Programs that play OpenSpiel's games: game-tree search and equilibrium policies.

They play as opponents in training or evaluation (`agents.player_1.program`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from colearn.contract import View
from colearn.contract.bounds import Count, check_bounds
from colearn.errors import ConfigError

from .games import hidden, load, position
from .phrasings import phrasing
from .task import GameState, OpenSpiel


@dataclass(frozen=True, kw_only=True)
class MCTS:
    """Monte-Carlo tree search with UCT, for games without hidden information.

    Errors: ConfigError on other tasks, and for a game with hidden information, simultaneous moves
    or payoffs before its end.
    """

    simulations: Count = 100
    """Simulations per move."""
    exploration: float = 2.0
    """OpenSpiel's `uct_c`, the exploration constant."""
    rollouts: Count = 10
    """Number of random playouts for each new position."""

    def __post_init__(self) -> None:
        check_bounds(self)

    def act(self, view: View) -> str:
        """Returns the most visited move of a new search."""
        import pyspiel

        task, state, seat = _seat(view, "mcts")
        game = load(state.game.name)
        if hidden(game):
            raise ConfigError(
                f"program: mcts would look at hidden cards in '{state.game.name}'; use equilibrium"
            )
        kind = game.get_type()
        in_turn = kind.dynamics == pyspiel.GameType.Dynamics.SEQUENTIAL
        if not in_turn or kind.reward_model != pyspiel.GameType.RewardModel.TERMINAL:
            raise ConfigError(
                f"program: mcts needs moves in turn and payoffs at the end, unlike "
                f"'{state.game.name}'; name another program"
            )
        seeds = [int(seed) for seed in view.rng.integers(2**31, size=2)]
        bot = pyspiel.MCTSBot(
            game,
            pyspiel.RandomRolloutEvaluator(self.rollouts, seeds[0]),
            self.exploration,
            self.simulations,
            1000,  # MiB at most
            True,
            seeds[1],
            False,
        )
        return _spoken(task, state, seat, int(bot.step(position(state.game.name, state.moves))))


@dataclass(frozen=True, kw_only=True)
class Equilibrium:
    """Plays a policy near an equilibrium: a closed form for Kuhn poker, and the result of CFR+ for
    other games.

    Errors: ConfigError on other tasks, and for a game without information states.
    """

    iterations: Count = 200
    """Number of CFR+ iterations for games without a closed form; the average policy is played."""
    alpha: Annotated[float, Field(ge=0.0, le=1 / 3)] = 1 / 3
    """For Kuhn poker, the probability, from 0 to 1/3, that player_0 bets with the Jack; player_0
    bets with the King three times as often."""

    def __post_init__(self) -> None:
        check_bounds(self)

    def act(self, view: View) -> str:
        """An action drawn from the policy at the player's information state."""
        task, state, seat = _seat(view, "equilibrium")
        at = position(state.game.name, state.moves)
        chances = self.policy(state.game.name, at, seat)
        actions = list(chances)
        weights = np.array([chances[action] for action in actions])
        index = int(view.rng.choice(len(actions), p=weights / weights.sum()))
        return _spoken(task, state, seat, actions[index])

    def policy(self, name: str, at: Any, seat: int) -> dict[int, float]:
        """The probability of each legal action in a position."""
        if load(name).get_type().short_name == "kuhn_poker" and load(name).num_players() == 2:
            bet = kuhn_bet(at.information_state_string(seat), self.alpha)
            return {0: 1.0 - bet, 1: bet}
        key = at.information_state_string(seat)
        return dict(average_policy(name, self.iterations).action_probabilities(key))


def kuhn_bet(key: str, alpha: float) -> float:
    """Probability that Kuhn poker's equilibrium strategy for `alpha` bets, or calls a bet, at an
    information state (Kuhn 1950). The state `key` is the player's card (0 is the Jack), followed by
    p or b for each pass or bet so far."""
    first = {"0": alpha, "1": 0.0, "2": 3 * alpha}
    called = {"0": 0.0, "1": alpha + 1 / 3, "2": 1.0}
    card, played = key[0], key[1:]
    if played == "":
        return first[card]
    if played == "pb":
        return called[card]
    if played == "p":
        return {"0": 1 / 3, "1": 0.0, "2": 1.0}[card]
    return {"0": 0.0, "1": 1 / 3, "2": 1.0}[card]


@lru_cache(maxsize=8)
def average_policy(name: str, iterations: int) -> Any:
    """CFR+'s average policy, a `pyspiel.TabularPolicy`."""
    import pyspiel

    game = load(name)
    if game.get_type().dynamics != pyspiel.GameType.Dynamics.SEQUENTIAL or (
        not game.get_type().provides_information_state_string
    ):
        raise ConfigError(f"program: equilibrium has no information states in '{name}'")
    solver = pyspiel.CFRPlusSolver(game)
    for _ in range(iterations):
        solver.evaluate_and_update_policy()
    return solver.tabular_average_policy()


def _seat(view: View, name: str) -> tuple[OpenSpiel, GameState, int]:
    if not isinstance(view.task, OpenSpiel) or not isinstance(view.state, GameState):
        raise ConfigError(f"program: {name} plays the task open_spiel only, without a wrapper")
    return view.task, view.state, view.task.agents.index(view.seat)


def _spoken(task: OpenSpiel, state: GameState, seat: int, action: int) -> str:
    at = position(state.game.name, state.moves)
    return task.said(phrasing(state.game.name, task.prompt).word(at, seat, action))
