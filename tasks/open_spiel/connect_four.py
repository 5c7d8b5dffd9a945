"""Connect Four in words (MARSHAL, listing 4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .board import marked
from .phrasing import Compact, Full

MARKS = "XO"


class ConnectFour(Full):
    system = "You are an AI agent that makes optimal decisions to win in the game of Connect Four."
    chosen = "column"
    example = "<X(3)>"

    def rules(self) -> Sequence[str]:
        return (
            "1. Connect Four is a two-player board game played on a 6x7 grid. Players take turns "
            "dropping their pieces into columns.",
            "2. The goal is to connect four of your pieces horizontally, vertically, or "
            "diagonally.",
            "3. Pieces fall to the bottom of the column or stack on top of existing pieces.",
            "4. The first player to connect four pieces wins. If the board fills up without a "
            "winner, it's a draw.",
        )

    def information(self, player: int) -> Sequence[str]:
        own, other = MARKS[player], MARKS[1 - player]
        return (
            f"1. Your mark is {own}. You are competing with another player controlling the mark "
            f"{other}.",
            "2. In each of your turns:",
            "   a. The game state shows the current board as a 6x7 grid.",
            "   b. You need to choose a column (0-6) to drop your piece, where 0 denotes the "
            "leftmost column, 6 denotes the rightmost column.",
            f"   c. All legal actions are provided as `<{own}({{column}})>`, where `{own}` is your "
            "mark, and {column} is the column number.",
        )

    def situation(self, state: Any, player: int) -> Sequence[str]:
        return marked(state, player)

    def word(self, state: Any, player: int, action: int) -> str:
        return f"<{MARKS[player]}({action})>"


class CompactConnectFour(Compact):
    """The stones of each column that is not full, bottom up.

    Example: `connect_four player_0 X c0 c1 X c2 X O c3 c4 c5 c6`.
    """

    name = "connect_four"

    def situation(self, state: Any, player: int) -> str:
        rows = marked(state, player)[::-1]
        words = [MARKS[player]]
        for column in range(len(rows[0])):
            stones = [row[column] for row in rows if row[column] != "_"]
            words += [f"c{column}" if len(stones) < len(rows) else "full", *stones]
        return " ".join(words)

    def word(self, state: Any, player: int, action: int) -> str:
        return f"c{action}"
