"""Attention patterns of packed trees: as a dense mask, and as blocks that need none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from colearn.contract.rows import Piece


class Block(NamedTuple):
    """Queries [first, last) attend to keys [start, end); causally if both are the same range."""

    first: int
    last: int
    start: int
    end: int

    @property
    def causal(self) -> bool:
        return self.first == self.start

    @property
    def pairs(self) -> int:
        """Products of a query with a key that the block costs."""
        whole = (self.last - self.first) * (self.end - self.start)
        return whole // 2 if self.causal else whole


class Rows(NamedTuple):
    """Neighbouring rows of a batch, [first, last), that have the same blocks."""

    first: int
    last: int
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class TreeMask:
    """The attention pattern of a batch of packed rows: every token sees its own ancestors, as far
    as its window goes. Padding sees itself in the dense mask, and nothing in the blocks."""

    pieces: tuple[tuple[Piece, ...], ...]
    """Of each row."""
    width: int
    """T, padding included."""

    def dense(self, device: torch.device) -> Tensor:
        """[B, 1, T, T] True where a query may attend."""
        return torch.stack([_visible(row, self.width) for row in self.pieces])[:, None].to(device)

    @cached_property
    def rows(self) -> tuple[Rows, ...] | None:
        """The same pattern as blocks; None where a window cuts the piece that it belongs to."""
        found: list[Rows] = []
        for number, pieces in enumerate(self.pieces):
            blocks = tree_blocks(pieces)
            if blocks is None:
                return None
            if found and found[-1].blocks == blocks:
                found[-1] = found[-1]._replace(last=number + 1)
            else:
                found.append(Rows(number, number + 1, blocks))
        return tuple(found)

    @cached_property
    def longest(self) -> int:
        """Tokens of the longest branch."""
        return max(
            (
                piece.first_position + piece.end - piece.start
                for row in self.pieces
                for piece in row
            ),
            default=0,
        )


class _Segment(NamedTuple):
    """Pieces in a row that only follow each other."""

    start: int
    end: int
    parent: int
    first_position: int
    visible_from: int


def tree_blocks(pieces: Sequence[Piece]) -> tuple[Block, ...] | None:
    """A row's attention as blocks: each piece causally on itself, first, and then the tokens of
    all pieces below it on all of its visible keys. No key is copied and no pair computed in vain.

    None where a piece cannot see all of its own tokens: its window is shorter than the piece.
    """
    segments = _segments(pieces)
    if any(one.visible_from > one.first_position for one in segments):
        return None
    blocks = [Block(one.start, one.end, one.start, one.end) for one in segments]
    below: list[list[_Segment]] = [[] for _ in segments]
    for segment in segments:
        above = segment.parent
        while above >= 0:
            below[above].append(segment)
            above = segments[above].parent
    for segment, readers in zip(segments, below, strict=True):
        merged: list[Block] = []
        for reader in readers:
            start = segment.start + max(0, reader.visible_from - segment.first_position)
            if start >= segment.end:
                continue
            if merged and merged[-1].last == reader.start and merged[-1].start == start:
                merged[-1] = merged[-1]._replace(last=reader.end)
            else:
                merged.append(Block(reader.start, reader.end, start, segment.end))
        blocks += merged
    return tuple(blocks)


def _segments(pieces: Sequence[Piece]) -> list[_Segment]:
    """Non-empty runs of pieces, each the only child of the one before it, parents first."""
    children = [0] * len(pieces)
    for piece in pieces:
        if piece.parent >= 0:
            children[piece.parent] += 1
    segments: list[_Segment] = []
    segment_of: list[int] = []
    for piece in pieces:
        above = -1 if piece.parent < 0 else segment_of[piece.parent]
        if piece.start == piece.end:
            segment_of.append(above)
            continue
        last = segments[-1] if above == len(segments) - 1 and segments else None
        if (
            last is not None
            and children[piece.parent] == 1
            and last.end == piece.start
            and last.visible_from == piece.visible_from
        ):
            segments[-1] = last._replace(end=piece.end)
        else:
            segments.append(
                _Segment(piece.start, piece.end, above, piece.first_position, piece.visible_from)
            )
        segment_of.append(len(segments) - 1)
    return segments


def _visible(pieces: Sequence[Piece], width: int) -> Tensor:
    """[T, T] which packed tokens each packed token may attend to; padding attends to itself."""
    seen = torch.zeros((width, width), dtype=torch.bool)
    positions = torch.zeros(width, dtype=torch.long)
    ancestors: list[list[int]] = []
    for number, piece in enumerate(pieces):
        count = piece.end - piece.start
        positions[piece.start : piece.end] = piece.first_position + torch.arange(count)
        above = [] if piece.parent < 0 else ancestors[piece.parent]
        ancestors.append([*above, number])
        for other in above:
            before = pieces[other]
            seen[piece.start : piece.end, before.start : before.end] = True
        seen[piece.start : piece.end, piece.start : piece.end] = torch.ones(
            (count, count), dtype=torch.bool
        ).tril()
        if piece.visible_from:
            seen[piece.start : piece.end] &= positions >= piece.visible_from
    seen |= torch.eye(width, dtype=torch.bool)
    return seen
