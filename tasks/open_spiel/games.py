"""Games by name or alias, and their positions as OpenSpiel states."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from colearn.errors import ConfigError, nearest, reason_of, required

ALIASES = {
    "mini_hanabi": (
        "hanabi(players=2,colors=2,ranks=2,hand_size=3,max_information_tokens=3,max_life_tokens=3)"
    ),
    "simple_hanabi": (
        "hanabi(players=2,colors=3,ranks=2,hand_size=5,max_information_tokens=8,max_life_tokens=3)"
    ),
}
"""Short names in addition to OpenSpiel's names (MARSHAL, section 3.3 and appendix I)."""

Move = int | tuple[int, ...]
"""One entry of a game's history: the action of chance or of the player to move. If all players move
at the same time, the entry has one action per player."""

_NOBODY = 0  # OpenSpiel's input for a player without a choice if all move at once


@dataclass(frozen=True, slots=True)
class Game:
    """An item: a game by its alias or OpenSpiel's name, with optional parameters in brackets."""

    name: str

    def __str__(self) -> str:
        return self.name


@lru_cache(maxsize=64)
def load(name: str) -> Any:
    """The `pyspiel.Game`.

    Errors: MissingExtra without OpenSpiel; ConfigError for a name or parameters that OpenSpiel does
    not know, and for games whose chance outcomes cannot be drawn by the caller.
    """
    pyspiel = required("pyspiel", "games", package="open-spiel")
    spelled = ALIASES.get(name, name)
    short = spelled.partition("(")[0]
    known = pyspiel.registered_names()
    if short not in known:
        raise ConfigError(f"task.games: no game '{name}'; {nearest(short, [*known, *ALIASES])}")
    try:
        game = pyspiel.load_game(spelled)
    except pyspiel.SpielError as error:
        raise ConfigError(f"task.games: '{name}': {reason_of(error)}") from None
    kind = game.get_type()
    chance_modes = (
        pyspiel.GameType.ChanceMode.DETERMINISTIC,
        pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC,
    )
    dynamics = (pyspiel.GameType.Dynamics.SEQUENTIAL, pyspiel.GameType.Dynamics.SIMULTANEOUS)
    if kind.chance_mode not in chance_modes or kind.dynamics not in dynamics:
        raise ConfigError(f"task.games: '{name}' has no chance moves to draw; choose another game")
    return game


@lru_cache(maxsize=8192)
def position(name: str, moves: tuple[Move, ...]) -> Any:
    """The `pyspiel.State` after `moves`. The state is shared between callers: clone it before a
    move."""
    if not moves:
        return load(name).new_initial_state()
    state = position(name, moves[:-1]).clone()
    if isinstance(moves[-1], tuple):
        state.apply_actions(list(moves[-1]))
    else:
        state.apply_action(moves[-1])
    return state


def after_chance(name: str, moves: tuple[Move, ...], rng: np.random.Generator) -> tuple[Move, ...]:
    """`moves` followed by chance's next moves, up to a player's turn or the end."""
    while position(name, moves).is_chance_node():
        outcomes = position(name, moves).chance_outcomes()
        weights = np.array([weight for _, weight in outcomes])
        outcome = outcomes[int(rng.choice(len(outcomes), p=weights / weights.sum()))]
        moves = (*moves, int(outcome[0]))
    return moves


def movers(state: Any) -> tuple[int, ...]:
    """Returns the players to move: one player, or, in a game with simultaneous moves, all players
    that have a choice."""
    if state.is_terminal():
        return ()
    if state.is_simultaneous_node():
        return tuple(seat for seat in range(state.num_players()) if state.legal_actions(seat))
    return (int(state.current_player()),)


def joined(state: Any, chosen: dict[int, int]) -> Move:
    """The history entry for the actions `chosen` (by player) in `state`."""
    if state.is_simultaneous_node():
        return tuple(chosen.get(seat, _NOBODY) for seat in range(state.num_players()))
    return chosen[int(state.current_player())]


def hidden(game: Any) -> bool:
    """Whether the game has hidden information."""
    import pyspiel

    open_game = pyspiel.GameType.Information.PERFECT_INFORMATION
    return bool(game.get_type().information != open_game)


def cooperative(game: Any) -> bool:
    """Whether all players get the same payoff."""
    import pyspiel

    return bool(game.get_type().utility == pyspiel.GameType.Utility.IDENTICAL)
