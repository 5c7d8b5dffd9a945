"""Boards of X and O, as rows of text and as a picture."""

from __future__ import annotations

from typing import Any

from colearn.contract.picture import Cell, Panel, Picture

COLOURS = {"X": "#c0504d", "O": "#4f81bd"}


def marked(state: Any, player: int) -> tuple[str, ...]:
    """The rows from the top; a cell is X, O or _ (empty)."""
    rows = state.observation_string(player).split()
    return tuple(row.upper().replace(".", "_") for row in rows)


def board_picture(state: Any) -> Picture:
    """A picture with one panel; a stone's kind is X or O, and its owner is player_0 or player_1."""
    rows = marked(state, 0)
    stones = {
        (x, y): Cell(kind=mark, owner=f"player_{'XO'.index(mark)}")
        for y, row in enumerate(rows)
        for x, mark in enumerate(row)
        if mark != "_"
    }
    panel = Panel("board", len(rows[0]), len(rows), stones)
    return Picture(groups=((panel,),), colours=COLOURS)
