"""Interface for phrasing a game as text, in a full form and a compact form.

The full form follows MARSHAL's appendix I: the player reads the rules once, and at each turn the
state of the game and the legal actions. The compact form is for small word-level models: the same
information in few words, each between single spaces.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any


class GameText(ABC):
    """The phrasing of one game, in the full or the compact form. `state` is a `pyspiel.State`;
    `player` counts from 0."""

    whole: bool = False
    """Whether each observation opens a new context and therefore contains everything that a player
    needs."""

    def __init__(self, game: Any) -> None:
        self.game = game

    @abstractmethod
    def observation(self, state: Any, player: int) -> str:
        """The text that the player reads at its turn; it includes the rules at the player's first
        turn."""

    @abstractmethod
    def word(self, state: Any, player: int, action: int) -> str:
        """The reply for a legal action; different actions of a state have different replies."""

    def words(self, state: Any, player: int) -> dict[str, int]:
        """Maps replies to legal actions, in OpenSpiel's order."""
        return {self.word(state, player, a): int(a) for a in state.legal_actions(player)}

    def revealed(self, state: Any) -> str:
        """The hidden information, in few words; '' if the game has none."""
        return ""

    def stake(self, state: Any, player: int) -> float:
        """The payoff that the player loses through an invalid reply, in the units of the game's
        payoffs."""
        return float(-self.game.min_utility())


class Compact(GameText):
    """The compact form: it shows the changes since the player's last turn and, in some games, the
    legal words."""

    name: str

    @abstractmethod
    def situation(self, state: Any, player: int) -> str:
        """The state of the game as the player sees it."""

    def observation(self, state: Any, player: int) -> str:
        if self.whole or turns(state, player) == 0:
            return f"{self.name} player_{player} {self.situation(state, player)}"
        return self.situation(state, player)


class Full(GameText):
    """The full form, with sections as in appendix I of the paper."""

    system: str
    """The paper's system prompt."""
    chosen: str = "action"
    example: str
    """An example reply for the instructions."""
    lost: str = "immediate loss of the game"

    @abstractmethod
    def rules(self) -> Sequence[str]:
        """The lines under GAME RULES."""

    @abstractmethod
    def information(self, player: int) -> Sequence[str]:
        """The lines under PLAYER INFORMATION."""

    @abstractmethod
    def situation(self, state: Any, player: int) -> Sequence[str]:
        """The lines under GAME STATE."""

    def observation(self, state: Any, player: int) -> str:
        number = turns(state, player)
        lines = [
            f"Information of Turn-{number + 1}:",
            "This is your turn. The game state and legal actions for this turn are provided below. "
            "Please choose your action and strictly follow the given output format in the response "
            "instructions.",
            "",
            "GAME STATE:",
            *self.situation(state, player),
            "",
            "LEGAL ACTIONS:",
            ", ".join(self.words(state, player)) + ".",
        ]
        return "\n".join(lines if number else [*self._opening(player), "", *lines])

    def _opening(self, player: int) -> list[str]:
        return [
            self.system,
            "",
            "GAME RULES:",
            *self.rules(),
            "",
            "PLAYER INFORMATION:",
            *self.information(player),
            "",
            "RESPONSE INSTRUCTIONS:",
            "Always choose only one action from the legal actions and output "
            f"`<answer>{{your chosen {self.chosen}}}</answer>` with no extra text after you finish "
            f"the thinking process. For example, `<answer>{self.example}</answer>`. Strictly "
            "follow the above format and keep your thinking process concise. Responses that do not "
            f"follow the format will result in {self.lost}.",
        ]


def made(state: Any) -> list[tuple[int, int]]:
    """Returns (player, action) for all moves so far; a player below 0 means chance."""
    return [(int(move.player), int(move.action)) for move in state.full_history()]


def turns(state: Any, player: int) -> int:
    """Number of moves that the player made before `state`."""
    return sum(mover == player for mover, _ in made(state))


def words_of_moves(phrasing: GameText, state: Any) -> list[tuple[int, str]]:
    """Returns (player, word) for all moves of players so far, oldest first."""
    before = phrasing.game.new_initial_state()
    moves = []
    for mover, action in made(state):
        if mover >= 0:
            moves.append((mover, phrasing.word(before, mover, action)))
        before.apply_action(action)
    return moves


def since_last_turn(phrasing: GameText, state: Any, player: int) -> list[tuple[int, str]]:
    """Returns (player, word) for the other players' moves since the player's last move."""
    moves = words_of_moves(phrasing, state)
    player_moves = [number for number, (mover, _) in enumerate(moves) if mover == player]
    return moves[player_moves[-1] + 1 :] if player_moves else moves
