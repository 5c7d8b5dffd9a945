"""Packer: concatenates the pieces of a tree's histories into one token row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from colearn.contract.rows import Mark, Piece, Row


@dataclass(slots=True)
class Packer:
    """Builds the tokens and pieces of one row."""

    tokens: list[int] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)

    def add(self, tokens: Sequence[int], parent: int, visible_from: int = 0) -> int:
        """Append a piece after piece `parent` (-1 at the root) and return its number."""
        first = self.position_after(parent)
        start = len(self.tokens)
        self.tokens.extend(tokens)
        self.pieces.append(Piece(start, len(self.tokens), parent, first, visible_from))
        return len(self.pieces) - 1

    def position_after(self, piece: int) -> int:
        """Number of tokens in the history that ends with this piece."""
        if piece < 0:
            return 0
        before = self.pieces[piece]
        return before.first_position + before.end - before.start

    def last_index(self, piece: int) -> int:
        """Row index of the last token in the history that ends with this piece."""
        while self.pieces[piece].end == self.pieces[piece].start:
            piece = self.pieces[piece].parent
        return self.pieces[piece].end - 1

    def marked(self, marks: Sequence[Mark]) -> Row:
        """The row of a critic, which reads a value at each mark."""
        return Row(tokens=tuple(self.tokens), pieces=tuple(self.pieces), marks=tuple(marks))
