"""Default phrasing: OpenSpiel's own strings under the headings of the other games."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .phrasing import Compact, Full


def shown(game: Any, state: Any, player: int) -> str:
    """Returns the information state, which contains everything that the player has seen, if
    OpenSpiel provides one for the game; otherwise the observation."""
    if game.get_type().provides_information_state_string and state.information_state_string(player):
        return str(state.information_state_string(player))
    if game.get_type().provides_observation_string:
        return str(state.observation_string(player))
    return "None"


class Other(Full):
    example = "<...>"

    def __init__(self, game: Any) -> None:
        super().__init__(game)
        self.title = game.get_type().long_name
        self.system = (
            f"You are an AI agent that makes optimal decisions to get the highest payoff in the "
            f"game of {self.title}."
        )

    def rules(self) -> Sequence[str]:
        low, high = self.game.min_utility(), self.game.max_utility()
        return (
            f"1. {self.title} is played by {self.game.num_players()} players.",
            f"2. At the end each player has a payoff between {low:g} and {high:g}.",
        )

    def information(self, player: int) -> Sequence[str]:
        return (
            f"1. You are player {player}. Players are numbered from 0.",
            "2. In each of your turns the game state shows what you know, and all legal actions "
            "are provided in angle brackets.",
        )

    def situation(self, state: Any, player: int) -> Sequence[str]:
        return shown(self.game, state, player).splitlines()

    def word(self, state: Any, player: int, action: int) -> str:
        return f"<{state.action_to_string(player, action)}>"


class CompactOther(Compact):
    """The compact form: OpenSpiel's string and the legal actions."""

    def __init__(self, game: Any) -> None:
        super().__init__(game)
        self.name = game.get_type().short_name

    def situation(self, state: Any, player: int) -> str:
        text = " ".join(shown(self.game, state, player).split())
        return " ".join([text, "say", " or ".join(self.words(state, player))])

    def word(self, state: Any, player: int, action: int) -> str:
        return "_".join(str(state.action_to_string(player, action)).split())

    def revealed(self, state: Any) -> str:
        """OpenSpiel's observation of each player."""
        seats = range(self.game.num_players())
        return " ".join(
            f"player_{seat} {' '.join(shown(self.game, state, seat).split())}" for seat in seats
        )
