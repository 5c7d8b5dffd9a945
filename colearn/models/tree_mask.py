"""Attention patterns of packed trees, as a dense mask and as blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from colearn.contract.rows import Piece


class AttentionRange(NamedTuple):
    """Range of queries [first, last) that attend to keys [start, end). Attention is causal if the
    two ranges are equal."""

    first: int
    last: int
    start: int
    end: int

    @property
    def causal(self) -> bool:
        return self.first == self.start

    @property
    def pairs(self) -> int:
        """Number of query-key pairs that attention computes for this block."""
        area = (self.last - self.first) * (self.end - self.start)
        return area // 2 if self.causal else area


class Rows(NamedTuple):
    """Adjacent rows [first, last) of a batch with equal blocks."""

    first: int
    last: int
    blocks: tuple[AttentionRange, ...]


@dataclass(frozen=True)
class TreeMask:
    """Attention pattern of a batch of packed rows, in which a token attends to its ancestors within
    its window. Padding attends to itself in the dense mask and to nothing in the blocks."""

    pieces: tuple[tuple[Piece, ...], ...]
    """The pieces of each row."""
    width: int
    """Width T of a row in tokens, padding included."""

    def dense(self, device: torch.device) -> Tensor:
        """Bool mask [B, 1, T, T], True where a query may attend."""
        return torch.stack([_visible(row, self.width) for row in self.pieces])[:, None].to(device)

    @cached_property
    def rows(self) -> tuple[Rows, ...] | None:
        """The attention pattern as blocks; None if a piece is longer than its attention window."""
        runs: list[Rows] = []
        for number, pieces in enumerate(self.pieces):
            blocks = tree_blocks(pieces)
            if blocks is None:
                return None
            if runs and runs[-1].blocks == blocks:
                runs[-1] = runs[-1]._replace(last=number + 1)
            else:
                runs.append(Rows(number, number + 1, blocks))
        return tuple(runs)

    @cached_property
    def longest(self) -> int:
        """Number of tokens in the longest branch."""
        return max(
            (
                piece.first_position + piece.end - piece.start
                for row in self.pieces
                for piece in row
            ),
            default=0,
        )


class PieceRun(NamedTuple):
    """A run of pieces without branching."""

    start: int
    end: int
    parent: int
    first_position: int
    visible_from: int


def tree_blocks(pieces: Sequence[Piece]) -> tuple[AttentionRange, ...] | None:
    """Convert a row's attention pattern to blocks. Each piece attends causally to itself, and the
    tokens of its descendants attend to its visible keys. No key is copied and no invisible pair is
    computed.

    Returns None if a piece is longer than its attention window.
    """
    segments = segments_of(pieces)
    if any(segment.visible_from > segment.first_position for segment in segments):
        return None
    blocks = [AttentionRange(s.start, s.end, s.start, s.end) for s in segments]
    below: list[list[PieceRun]] = [[] for _ in segments]
    for segment in segments:
        above = segment.parent
        while above >= 0:
            below[above].append(segment)
            above = segments[above].parent
    for segment, readers in zip(segments, below, strict=True):
        merged: list[AttentionRange] = []
        for reader in readers:
            start = segment.start + max(0, reader.visible_from - segment.first_position)
            if start >= segment.end:
                continue
            if merged and merged[-1].last == reader.start and merged[-1].start == start:
                merged[-1] = merged[-1]._replace(last=reader.end)
            else:
                merged.append(AttentionRange(reader.start, reader.end, start, segment.end))
        blocks += merged
    return tuple(blocks)


def segments_of(pieces: Sequence[Piece]) -> list[PieceRun]:
    """Return the non-empty runs of pieces, parents first. Each piece in a run, except the first, is
    the only child of the previous piece."""
    children = [0] * len(pieces)
    for piece in pieces:
        if piece.parent >= 0:
            children[piece.parent] += 1
    segments: list[PieceRun] = []
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
                PieceRun(piece.start, piece.end, above, piece.first_position, piece.visible_from)
            )
        segment_of.append(len(segments) - 1)
    return segments


def _visible(pieces: Sequence[Piece], width: int) -> Tensor:
    """Bool [T, T]: the tokens to which each token may attend; padding attends to itself."""
    count = len(pieces)
    above = torch.zeros((count + 1, count + 1), dtype=torch.bool)  # one more for padding
    piece_of = torch.full((width,), count)
    positions = torch.zeros(width, dtype=torch.long)
    visible_from = torch.zeros(width, dtype=torch.long)
    for number, piece in enumerate(pieces):
        if piece.parent >= 0:
            above[number] = above[piece.parent]
        above[number, number] = True
        first, tokens = piece.first_position, slice(piece.start, piece.end)
        piece_of[tokens] = number
        positions[tokens] = torch.arange(first, first + piece.end - piece.start)
        visible_from[tokens] = piece.visible_from
    mask = above[piece_of][:, piece_of]
    mask &= positions <= positions[:, None]
    mask &= positions >= visible_from[:, None]
    mask.fill_diagonal_(True)
    return mask
