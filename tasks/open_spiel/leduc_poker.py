"""Leduc hold'em in words (MARSHAL, listing 5), for two players."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .phrasing import Compact, Full, made, turns

CARDS = ("J", "J", "Q", "Q", "K", "K")
ACTIONS = ("FOLD", "CALL", "RAISE")


def card(state: Any, player: int) -> str:
    """The player's card: J, Q or K."""
    return CARDS[[action for mover, action in made(state) if mover < 0][player]]


def events(state: Any) -> list[tuple[int, str]]:
    """Events after the deal: (player, action), and (-1, card) when the public card is revealed."""
    moves = []
    for mover, action in made(state)[2:]:
        moves.append((-1, CARDS[action]) if mover < 0 else (mover, ACTIONS[action]))
    return moves


def chips(state: Any, player: int) -> float:
    """The player's chips in the pot."""
    match = re.search(r"\[Ante: ([\d ]+)\]", state.observation_string(player))
    assert match is not None, "OpenSpiel prints the ante of each player"
    return float(match.group(1).split()[player])


class LeducPoker(Full):
    system = "You are an AI agent that makes optimal decisions to win in the game of Leduc Poker."
    example = "<CALL>"

    def rules(self) -> Sequence[str]:
        return (
            "1. Leduc poker is a two-player card game. The deck includes only six cards: two pairs "
            "of King (K), Queen (Q), and Jack (J).",
            "2. At the start of each game, both player_0 and player_1 place 1 chip into the pot as "
            "a blind ante.",
            "3. Each player is dealt one private card from the deck, and the remaining cards are "
            "set aside unseen.",
            "4. The game has two betting rounds. When the first round ends, one public card from "
            "the remaining cards of the deck is revealed to both players.",
            "5. The two players take turns acting in the betting rounds, both starting with "
            "player_0. A player can choose to:",
            "   a. <FOLD>: stop betting and the other player wins the pot.",
            "   b. <CALL>: match the current bet. If no bet has been made in the current round, "
            "this is equivalent to checking.",
            "   c. <RAISE>: first match the current bet and then add `n` chips to the bet, where "
            "`n=2` in the first round and `n=4` in the second round. If no bet has been made in "
            "the current round, this is equivalent to betting `n` chips.",
            "6. A maximum of two <RAISE>s are allowed in each round. Each round ends when both "
            "players have acted and their bets are equal.",
            "7. If a player chooses to <FOLD>, the other player wins the pot.",
            "8. If neither player chooses to <FOLD>, the second round ends with a showdown:",
            "   a. If a player has a pair (private card = public card), the player wins the pot.",
            "   b. If neither player has a pair, the player with the higher card (K > Q > J) wins "
            "the pot.",
            "   c. If two players have the same card, the players split the pot.",
        )

    def information(self, player: int) -> Sequence[str]:
        return (
            f"1. You are player_{player}. You are competing with player_{1 - player}.",
            "2. In each of your turns:",
            "   a. The game state shows your private card, public card (if revealed), and the "
            "betting history.",
            "   b. You need to choose an action based on your cards and the current game state.",
            "   c. All legal actions for the current turn are provided in the format of `<FOLD>`, "
            "`<CALL>`, or `<RAISE>`.",
        )

    def situation(self, state: Any, player: int) -> Sequence[str]:
        lines = [
            "Blind ante: both player_0 and player_1 place 1 chip into the pot.",
            f"Deal: your card is {card(state, player)}.",
        ]
        for mover, text in events(state):
            lines.append(
                f"Reveal: the public card is {text}."
                if mover < 0
                else f"player_{mover} chooses <{text}>."
            )
        return [f"{number}. {line}" for number, line in enumerate(lines, 1)]

    def word(self, state: Any, player: int, action: int) -> str:
        return f"<{ACTIONS[action]}>"

    def stake(self, state: Any, player: int) -> float:
        """The player's chips in the pot."""
        return chips(state, player)


class CompactLeducPoker(Compact):
    """Shows the cards as they become known, the other player's moves since then, and the legal
    words.

    Example: `leduc_poker player_1 card Q player_0 raise say fold or call or raise`.
    """

    name = "leduc_poker"

    def situation(self, state: Any, player: int) -> str:
        moves, last = events(state), -1
        for number, (mover, _) in enumerate(moves):
            if mover == player:
                last = number
        words = [] if turns(state, player) else [f"card {card(state, player)}"]
        for mover, text in moves[last + 1 :]:
            words.append(f"public {text}" if mover < 0 else f"player_{mover} {text.lower()}")
        return " ".join([*words, "say", " or ".join(self.words(state, player))])

    def word(self, state: Any, player: int, action: int) -> str:
        return ACTIONS[action].lower()

    def revealed(self, state: Any) -> str:
        """The cards of both players."""
        return " ".join(f"player_{player} card {card(state, player)}" for player in (0, 1))

    def stake(self, state: Any, player: int) -> float:
        """The player's chips in the pot."""
        return chips(state, player)
