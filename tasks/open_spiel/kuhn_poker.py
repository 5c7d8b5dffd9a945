"""Kuhn poker in words (MARSHAL, listing 2), for two players."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .phrasing import Compact, Full, made, since_last_turn, words_of_moves

CARDS = ("J", "Q", "K")
NAMES = ("Jack", "Queen", "King")
ACTIONS = ("PASS", "BET")


def card(state: Any, player: int) -> int:
    """The number of the player's card, 0 for the Jack."""
    dealt = [action for mover, action in made(state) if mover < 0]
    return dealt[player]


def chips(state: Any, player: int) -> float:
    """The player's chips in the pot: the ante plus the bet."""
    return 1.0 + sum(move == (player, ACTIONS.index("BET")) for move in made(state))


class KuhnPoker(Full):
    system = "You are an AI agent that makes optimal decisions to win in the game of Kuhn Poker."
    example = "<PASS>"

    def rules(self) -> Sequence[str]:
        return (
            "1. Kuhn Poker is a two-player card game. The deck includes only three cards: King (K) "
            "> Queen (Q) > Jack (J).",
            "2. At the start of each game, both player_0 and player_1 place 1 chip into the pot as "
            "a blind ante.",
            "3. Each player is dealt a private card, and the third card is set aside unseen.",
            "4. The two players take turns acting, starting with player_0. A player can choose to:",
            "   a. <PASS>: place no additional chips into the pot.",
            "   b. <BET>: place 1 additional chip into the pot.",
            "5. If a player chooses to <PASS> after the other player's <BET>, the betting player "
            "wins the pot.",
            "6. If both players choose to <PASS> or both players choose to <BET>, the player with "
            "the higher card wins the pot.",
        )

    def information(self, player: int) -> Sequence[str]:
        return (
            f"1. You are player_{player}. You are competing with player_{1 - player}.",
            "2. In each of your turns:",
            "   a. The game state shows your private card and the betting history.",
            "   b. You need to choose an action based on your card and the current game state.",
            "   c. All legal actions for the current turn are provided in the format of `<PASS>` "
            "or `<BET>`.",
        )

    def situation(self, state: Any, player: int) -> Sequence[str]:
        rank = card(state, player)
        return (
            "1. Blind ante: both player_0 and player_1 place 1 chip into the pot.",
            f"2. Deal: your card is {NAMES[rank]} ({CARDS[rank]}).",
            *(
                f"{number}. player_{mover} chooses {word}."
                for number, (mover, word) in enumerate(words_of_moves(self, state), 3)
            ),
        )

    def word(self, state: Any, player: int, action: int) -> str:
        return f"<{ACTIONS[action]}>"

    def stake(self, state: Any, player: int) -> float:
        """The player's chips in the pot."""
        return chips(state, player)


class CompactKuhnPoker(Compact):
    """Shows the card once, then the other player's moves.

    Example: `kuhn_poker player_1 card Q player_0 bet say pass or bet`.
    """

    name = "kuhn_poker"

    def situation(self, state: Any, player: int) -> str:
        others = [f"player_{mover} {word}" for mover, word in since_last_turn(self, state, player)]
        known = [] if _moved(state, player) else [f"card {CARDS[card(state, player)]}"]
        return " ".join([*known, *others, "say", " or ".join(self.words(state, player))])

    def word(self, state: Any, player: int, action: int) -> str:
        return ACTIONS[action].lower()

    def revealed(self, state: Any) -> str:
        """The cards of both players."""
        return " ".join(f"player_{player} card {CARDS[card(state, player)]}" for player in (0, 1))

    def stake(self, state: Any, player: int) -> float:
        """The player's chips in the pot."""
        return chips(state, player)


def _moved(state: Any, player: int) -> bool:
    return any(mover == player for mover, _ in made(state))
