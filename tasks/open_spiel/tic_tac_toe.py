"""Tic-Tac-Toe in words (MARSHAL, listing 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .board import marked
from .phrasing import Compact, Full

MARKS = "XO"


def cell(action: int) -> tuple[int, int]:
    """(row, column), both from 0 at the top left."""
    return divmod(action, 3)


class TicTacToe(Full):
    system = "You are an AI agent that makes optimal decisions to win in the game of Tic-Tac-Toe."
    example = "<X(0,0)>"

    def rules(self) -> Sequence[str]:
        return (
            "1. Tic-Tac-Toe is a two-player board game played on a three-by-three grid. The grid "
            "is 0-indexed, where (0,0) is the top-left corner and (2,2) is the bottom-right "
            "corner.",
            "2. Two players take turns placing their marks X and O in empty cells of the grid.",
            "3. The player who first places three of their marks in a horizontal, vertical, or "
            "diagonal line wins.",
            "4. If all cells are filled and no player wins, the game ends in a draw.",
        )

    def information(self, player: int) -> Sequence[str]:
        own, other = MARKS[player], MARKS[1 - player]
        return (
            f"1. Your mark is {own}. You are competing with another player controlling the mark "
            f"{other}.",
            "2. In each of your turns:",
            "   a. The game state demonstrates the current board with a three-line text grid, "
            "where 'X' and 'O' are the marks of the two players, and '_' represents empty cells.",
            "   b. You need to chose an action to place your mark in an empty cell, based on the "
            "given game state and the history of your decisions.",
            "   c. All legal actions for the current turn are provided in the format of "
            f"`<{own}({{row}},{{column}})>`, where `{own}` is your mark, and {{row}} and "
            "{column} are integers indicating the row and column of the cell to place your mark.",
        )

    def situation(self, state: Any, player: int) -> Sequence[str]:
        return marked(state, player)

    def word(self, state: Any, player: int, action: int) -> str:
        row, column = cell(action)
        return f"<{MARKS[player]}({row},{column})>"


class CompactTicTacToe(Compact):
    """The board row by row, empty cells by their names, which are also the actions.

    Example: `tic_tac_toe player_0 X r0c0 r0c1 O / r1c0 X r1c2 / r2c0 r2c1 r2c2`.
    """

    name = "tic_tac_toe"

    def situation(self, state: Any, player: int) -> str:
        rows = []
        for y, row in enumerate(marked(state, player)):
            rows.append(" ".join(m if m != "_" else f"r{y}c{x}" for x, m in enumerate(row)))
        return " ".join((MARKS[player], " / ".join(rows)))

    def word(self, state: Any, player: int, action: int) -> str:
        row, column = cell(action)
        return f"r{row}c{column}"
