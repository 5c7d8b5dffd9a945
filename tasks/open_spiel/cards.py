"""Pictures of hands and chips in the poker games, for human viewers."""

from __future__ import annotations

from typing import Any

from colearn.contract.picture import Cell, Panel, Picture

from . import kuhn_poker, leduc_poker

RANKS = "JQK"
PAINT = {"J": "#4f81bd", "Q": "#8064a2", "K": "#c0504d", "chip": "#f2c530"}


def kuhn_picture(state: Any) -> Picture:
    """A picture of both cards and the chips in the pot."""
    cards = [kuhn_poker.CARDS[kuhn_poker.card(state, player)] for player in (0, 1)]
    return _picture(cards, [kuhn_poker.chips(state, player) for player in (0, 1)], None)


def leduc_picture(state: Any) -> Picture:
    """A picture of both cards, the public card once it is revealed, and the chips in the pot."""
    cards = [leduc_poker.card(state, player) for player in (0, 1)]
    public = [card for player, card in leduc_poker.events(state) if player < 0]
    chips = [leduc_poker.chips(state, player) for player in (0, 1)]
    return _picture(cards, chips, public[0] if public else None)


def _picture(cards: list[str], chips: list[float], public: str | None) -> Picture:
    """Draws each card in the row of its rank, with the King on top, and the chips in a row
    below."""
    panels = []
    for player, face in enumerate(cards):
        owner = f"player_{player}"
        cells = {(0, len(RANKS) - 1 - RANKS.index(face)): Cell(kind=face, owner=owner)}
        cells |= {
            (n, len(RANKS)): Cell(kind="chip", owner=owner) for n in range(int(chips[player]))
        }
        panels.append(Panel(f"player_{player}: {face}", 13, len(RANKS) + 1, cells))
    if public is not None:
        cells = {(0, len(RANKS) - 1 - RANKS.index(public)): Cell(kind=public)}
        panels.append(Panel(f"public card: {public}", 1, len(RANKS) + 1, cells))
    return Picture(groups=(tuple(panels),), colours=PAINT)
