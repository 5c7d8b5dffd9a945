"""Hanabi for two players in words (MARSHAL, listing 3), with any number of colours, ranks and
cards."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from colearn.contract.picture import Cell, Panel, Picture

from .phrasing import Compact, Full, since_last_turn

COLOURS = {"R": "Red", "Y": "Yellow", "G": "Green", "W": "White", "B": "Blue"}
PAINT = {"R": "#c0504d", "Y": "#f2c530", "G": "#6aa84f", "W": "#d9d9d9", "B": "#4f81bd"}
_NUMBERS = {1: "one", 2: "two", 3: "three"}
_DEFAULTS = {
    "colors": 5,
    "ranks": 5,
    "hand_size": 5,  # for two players
    "max_information_tokens": 8,
    "max_life_tokens": 3,
}
_ACTION = re.compile(r"\((Play|Discard|Reveal player) ([^ )]+)(?: (color|rank) (\w))?\)")


@dataclass(frozen=True, slots=True)
class Card:
    """A card in a hand."""

    face: str
    """Colour and rank, such as R2; empty if the reader may not see the card."""
    colours: str
    """The colours that the holder of the card considers possible, as letters."""
    ranks: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VisiblePosition:
    """The position as the player to move sees it."""

    lives: int
    tokens: int
    stacks: tuple[str, ...]
    """The top card of each colour's stack; for example R0 if the red stack is empty."""
    deck: int
    discards: tuple[str, ...]
    own: tuple[Card, ...]
    other: tuple[Card, ...]


def table(state: Any, player: int) -> VisiblePosition:
    """Parses the observation that OpenSpiel gives the player to move."""
    text = state.observation_string(player)
    fields = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    hands = text.partition("Hands:\n")[2].partition("\nDeck size")[0].split("-----\n")
    own, other = (_hand(hand) for hand in hands)
    return VisiblePosition(
        lives=int(fields["Life tokens"]),
        tokens=int(fields["Info tokens"]),
        stacks=tuple(fields["Fireworks"].split()),
        deck=int(fields["Deck size"]),
        discards=tuple(text.partition("Discards:")[2].split()),
        own=own,
        other=other,
    )


def _hand(text: str) -> tuple[Card, ...]:
    cards = []
    for line in text.splitlines():
        if "||" not in line:  # the line that says whose turn it is
            continue
        face, _, known = line.partition(" || ")
        possible = known.partition("|")[2]
        cards.append(
            Card(
                face="" if "X" in face else face,
                colours="".join(c for c in possible if c.isalpha()),
                ranks="".join(c for c in possible if c.isdigit()),
            )
        )
    return tuple(cards)


def parts(state: Any, player: int, action: int) -> tuple[str, str, str]:
    """The parts of an action: (Play, 0, ''), (Discard, 1, ''), (Reveal, color, R) or (Reveal, rank,
    2)."""
    match = _ACTION.fullmatch(state.action_to_string(player, action))
    assert match is not None, state.action_to_string(player, action)
    verb, place, kind, value = match.groups()
    return ("Reveal", kind, value) if verb == "Reveal player" else (verb, place, "")


class Hanabi(Full):
    system = (
        "You are an AI agent that makes optimal decisions to achieve the highest score in the game "
        "of Hanabi."
    )
    example = "<Discard card 0>"
    lost = "immediate loss of all life tokens and end of the game"

    def rules(self) -> Sequence[str]:
        have = parameters(self.game)
        colours, ranks = list(COLOURS)[: have["colors"]], have["ranks"]
        each = sum(_copies(rank, ranks) for rank in range(1, ranks + 1))
        named = ", ".join(f"{COLOURS[c]}(denoted by {c})" for c in colours)
        listed = [
            f"{_NUMBERS[_copies(rank, ranks)]} of rank {rank}" for rank in range(1, ranks + 1)
        ]
        spread = ", and ".join([", ".join(listed[:-1]), listed[-1]])
        return (
            "1. Hanabi is a cooperative card game for 2 players, player 0 and player 1.",
            f"2. The deck consists of {len(colours)} colors: {named}, with ranks ranging from 1 to "
            f"{ranks}. Each color contains {each} cards: {spread}, for a total of "
            f"{each * len(colours)} cards.",
            f"3. Each player holds {have['hand_size']} cards in hand. Players can observe the hand "
            "of the other player, but not their own.",
            f"4. There are {have['max_information_tokens']} information tokens and "
            f"{have['max_life_tokens']} life tokens shared by both players.",
            f"5. The objective is to play cards in ascending order of rank, from 1 to {ranks}, to "
            "their corresponding color stacks, hence achieving the 'Fireworks'.",
            "6. The players take turns to take one of the following actions:",
            "   a. <Play `i`>: play the i-th card from the player's own hand (0-indexed). If the "
            "card is sequential to the top card of its corresponding color stack, the move is "
            "valid and the card is added to the top of the stack, then both players receive 1 "
            "point. Otherwise, a life token is lost.",
            "   b. <Discard `i`>: discard the i-th card from the player's own hand and gain one "
            "information token.",
            "   c. <Reveal player +1 color `c`>: spend one information token to reveal all cards "
            "of color `c` in the other player's hand.",
            "   d. <Reveal player +1 rank `r`>: spend one information token to reveal all cards of "
            "rank `r` in the other player's hand.",
            "7. After playing or discarding, the player receives a new card from the deck (if "
            "remaining).",
            "8. The game ends when:",
            "   a. If all color stacks are completed (i.e., all cards of rank "
            f"{ranks} are played to their corresponding color stacks), then both players finish "
            f"the game with the highest possible total score of {ranks * len(colours)}.",
            "   b. If deck is depleted, both players finish the game with a total score which "
            "equals the sum of the highest ranks of each color stack.",
            "   c. If all life tokens are lost before the above two conditions are met, then both "
            "players lose all points they have earned so far, and finish the game with a total "
            "score of 0.",
        )

    def information(self, player: int) -> Sequence[str]:
        return (
            f"1. You will be playing as the player {player}.",
            "2. In each of your turns, you will be provided with the current game state "
            "information, including the remaining life tokens and information tokens, the current "
            "color stacks, the remaining deck size, the discard pile, the hand of the other "
            "player, and the revealed information on your own hand.",
            "3. Known cards are denoted by their color and rank. For example, 'R2' means a red "
            "card of rank 2.",
            "4. The current color stacks are represented by the top card of each color stack. In "
            "particular, rank 0 denotes an empty stack. For example, 'Y0' means the yellow stack "
            "is still empty.",
        )

    def situation(self, state: Any, player: int) -> Sequence[str]:
        position = table(state, player)
        lines = [
            f"1. There are {position.lives} life tokens and {position.tokens} information tokens "
            "remaining.",
            f"2. The top of the color stacks are: {' '.join(position.stacks)}.",
            f"3. {position.deck} cards remain in the draw pile.",
            f"4. The discard pile currently contains: {' '.join(position.discards) or 'None'}.",
            "5. The other player's hand:",
        ]
        for number, card in enumerate(position.other):
            lines.append(
                f"- Card {number} ({card.face}): the other player believes it is {_possible(card)}."
            )
        lines.append("6. Your own hand, based on the revealed information:")
        lines += [
            f"- Card {number}: {_possible(card)}." for number, card in enumerate(position.own)
        ]
        others = since_last_turn(self, state, player)
        if others:
            moves = ", ".join(f"player {mover} chose {word}" for mover, word in others)
            lines.append(f"7. Since your last turn: {moves}.")
        return lines

    def word(self, state: Any, player: int, action: int) -> str:
        verb, target, value = parts(state, player, action)
        if verb == "Reveal":
            return f"<Reveal player +1 {target} {value}>"
        return f"<{verb} card {target}>"

    def stake(self, state: Any, player: int) -> float:
        """The points earned so far, which the team loses when it runs out of lives."""
        return float(state.returns()[player])


class CompactHanabi(Compact):
    """The table in one line. A card of the player's own hand is shown as its possible colours and
    ranks, such as RY12.

    Example: `hanabi player_0 lives 3 tokens 3 stacks R0 Y0 deck 2 discards none other Y1 R1 R1
    knows RY12 RY12 RY12 own RY12 RY12 RY12 say play_0 or play_1 ...`.
    """

    name = "hanabi"

    def situation(self, state: Any, player: int) -> str:
        position = table(state, player)
        words = [
            f"lives {position.lives} tokens {position.tokens} stacks {' '.join(position.stacks)}",
            f"deck {position.deck} discards {' '.join(position.discards) or 'none'}",
            f"other {' '.join(card.face for card in position.other)}",
            f"knows {' '.join(card.colours + card.ranks for card in position.other)}",
            f"own {' '.join(card.colours + card.ranks for card in position.own)}",
        ]
        words += [f"player_{mover} {word}" for mover, word in since_last_turn(self, state, player)]
        return " ".join([*words, "say", " or ".join(self.words(state, player))])

    def word(self, state: Any, player: int, action: int) -> str:
        verb, target, value = parts(state, player, action)
        return f"{target}_{value}" if verb == "Reveal" else f"{verb.lower()}_{target}"

    def revealed(self, state: Any) -> str:
        """The cards of both hands."""
        position = table_of_all(state)
        hands = (" ".join(card.face for card in hand) for hand in (position.own, position.other))
        return " ".join(f"player_{player} {hand}" for player, hand in enumerate(hands))

    def stake(self, state: Any, player: int) -> float:
        """The points earned so far, which the team loses when it runs out of lives."""
        return float(state.returns()[player])


def picture(state: Any) -> Picture:
    """A picture of the stacks and both hands; each card is drawn in the row of its rank."""
    ranks = parameters(state.get_game())["ranks"]
    first = table_of_all(state)
    panels = [
        Panel(
            "stacks",
            len(first.stacks),
            ranks,
            {
                (column, ranks - rank): Cell(kind=top[0])
                for column, top in enumerate(first.stacks)
                for rank in range(1, int(top[1]) + 1)
            },
        )
    ]
    for seat, hand in enumerate((first.own, first.other)):
        cells = {
            (column, ranks - int(card.face[1])): Cell(kind=card.face[0], owner=f"player_{seat}")
            for column, card in enumerate(hand)
        }
        panels.append(Panel(f"hand of player_{seat}", max(1, len(hand)), ranks, cells))
    caption = f"{first.lives} lives, {first.tokens} tokens, {first.deck} cards in the deck"
    return Picture(groups=(tuple(panels),), colours=PAINT, caption=caption)


def table_of_all(state: Any) -> VisiblePosition:
    """The table with both hands open, for human viewers; player 0's hand is `own`."""
    positions = [table(state, player) for player in (0, 1)]
    return VisiblePosition(
        lives=positions[0].lives,
        tokens=positions[0].tokens,
        stacks=positions[0].stacks,
        deck=positions[0].deck,
        discards=positions[0].discards,
        own=positions[1].other,
        other=positions[0].other,
    )


def parameters(game: Any) -> dict[str, Any]:
    """The game's parameters; OpenSpiel lists those alone that were given."""
    return {**_DEFAULTS, **game.get_parameters()}


def _copies(rank: int, ranks: int) -> int:
    """Number of cards of a rank in each colour."""
    if rank == 1:
        return 3
    return 1 if rank == ranks else 2


def _possible(card: Card) -> str:
    colours, ranks = ", ".join(card.colours), ", ".join(card.ranks)
    return f"one of the colors [{colours}] and one of the ranks [{ranks}]"
