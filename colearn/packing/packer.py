"""Packing: pieces of a tree's histories, one behind the other in one row of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from colearn.contract.rows import Piece


@dataclass(slots=True)
class Packer:
    """Tokens and pieces of a row that is being made."""

    tokens: list[int] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)

    def add(self, tokens: Sequence[int], parent: int, visible_from: int = 0) -> int:
        """The number of the new piece, behind piece `parent` of its history (-1 at the root)."""
        first = self.position_after(parent)
        start = len(self.tokens)
        self.tokens.extend(tokens)
        self.pieces.append(Piece(start, len(self.tokens), parent, first, visible_from))
        return len(self.pieces) - 1

    def position_after(self, piece: int) -> int:
        """Tokens of the history that ends with this piece."""
        if piece < 0:
            return 0
        before = self.pieces[piece]
        return before.first_position + before.end - before.start

    def last_index(self, piece: int) -> int:
        """Place in the row of the last token of that history."""
        while self.pieces[piece].end == self.pieces[piece].start:
            piece = self.pieces[piece].parent
        return self.pieces[piece].end - 1
