"""Tic-Tac-Toe in words (MARSHAL, listing 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .board import marked
from .phrasing import Compact, Full

MARKS = "XO"
LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))
"""Lines of three cells, given as actions: three rows, three columns, two diagonals."""


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
    """Lists the cells row by row. An occupied cell is shown with its owner; an empty cell is shown
    by its name, which is also the action.

    The compact form includes facts that a small model does not learn within a few thousand games:
    an empty cell has the prefix `wins_` if it completes a line of the player, else `stops_` if it
    would complete a line of the opponent.

    Example: `tic_tac_toe player_0 own_r0c0 own_r0c1 wins_r0c2 r1c0 other_r1c1 r1c2 other_r2c0 ...`.
    """

    name = "tic_tac_toe"
    whole = True

    def situation(self, state: Any, player: int) -> str:
        marks = "".join(marked(state, player))
        own, other = MARKS[player], MARKS[1 - player]
        words = []
        for action, mark in enumerate(marks):
            word = self.word(state, player, action)
            if mark != "_":
                word = f"own_{word}" if mark == own else f"other_{word}"
            elif _completes(marks, action, own):
                word = f"wins_{word}"
            elif _completes(marks, action, other):
                word = f"stops_{word}"
            words.append(word)
        return " ".join(words)

    def word(self, state: Any, player: int, action: int) -> str:
        row, column = cell(action)
        return f"r{row}c{column}"


def _completes(marks: str, action: int, mark: str) -> bool:
    """Whether two cells with `mark` are in one line with the given cell."""
    return any(
        all(marks[other] == mark for other in line if other != action)
        for line in LINES
        if action in line
    )
