"""Maps each game to its phrasing and picture."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal, get_args

from colearn.contract.picture import Picture

from . import hanabi
from .board import board_picture
from .cards import kuhn_picture, leduc_picture
from .connect_four import CompactConnectFour, ConnectFour
from .games import load
from .kuhn_poker import CompactKuhnPoker, KuhnPoker
from .leduc_poker import CompactLeducPoker, LeducPoker
from .other import CompactOther, Other
from .phrasing import GameText
from .tic_tac_toe import CompactTicTacToe, TicTacToe

Form = Literal["full", "compact"]
FORMS: tuple[str, ...] = get_args(Form)

_PHRASED: dict[str, tuple[type[GameText], type[GameText]]] = {
    "connect_four": (ConnectFour, CompactConnectFour),
    "hanabi": (hanabi.Hanabi, hanabi.CompactHanabi),
    "kuhn_poker": (KuhnPoker, CompactKuhnPoker),
    "leduc_poker": (LeducPoker, CompactLeducPoker),
    "tic_tac_toe": (TicTacToe, CompactTicTacToe),
}
_HANABI = {
    "players",
    "colors",
    "ranks",
    "hand_size",
    "max_information_tokens",
    "max_life_tokens",
}
_PICTURES: dict[str, Callable[[Any], Picture]] = {
    "connect_four": board_picture,
    "hanabi": hanabi.picture,
    "kuhn_poker": kuhn_picture,
    "leduc_poker": leduc_picture,
    "tic_tac_toe": board_picture,
}


@lru_cache(maxsize=256)
def phrasing(name: str, form: str) -> GameText:
    """The phrasing of a game by its name. A game without a phrasing in this package uses
    OpenSpiel's strings."""
    game = load(name)
    known = _PHRASED[game.get_type().short_name] if _in_own_words(game) else (Other, CompactOther)
    return known[FORMS.index(form)](game)


def draw(name: str, state: Any) -> Picture:
    """A picture of the position; without panels if the game has no picture."""
    game = load(name)
    if not _in_own_words(game):
        return Picture(groups=())
    return _PICTURES[game.get_type().short_name](state)


def revealed(name: str, state: Any) -> str:
    """The hidden information in the compact form; '' if the game has none."""
    return phrasing(name, "compact").revealed(state)


def _in_own_words(game: Any) -> bool:
    """Whether a game has a phrasing for its parameters: Hanabi for two players with any cards,
    other games only with default parameters."""
    short, settings = game.get_type().short_name, game.get_parameters()
    if short == "hanabi":
        return game.num_players() == 2 and settings.keys() <= _HANABI
    return short in _PHRASED and settings == load(short).get_parameters()
