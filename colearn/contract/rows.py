"""Inputs and outputs of learners: packed rows, micro-batches, network outputs.

Shape letters: B rows, T packed tokens, N action tokens, S actions, M marks.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class Piece(NamedTuple):
    """A run of tokens that belong together: what one node adds to a history or a stream."""

    start: int
    end: int
    parent: int
    """Number of the piece before it in the same history; -1 at the root."""
    first_position: int
    visible_from: int
    """First position that these tokens may attend to (the window's edge)."""


class Span(NamedTuple):
    """One action inside a row: its tokens are predicted and trained."""

    node: int
    """The node that the action led to."""
    start: int
    end: int
    before: int
    """Index of the token that predicts the first one: the last of the history h_t."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A place where a value is read: the last token that belongs to V's or Q's input."""

    node: int
    index: int
    inside: int | None = None
    """None: of all that the node holds. k: before token k + 1 of the action that led to it."""
    agent: str | None = None
    """Whose value it is; None: that of all whom the reader values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Packed tokens with the places where log-probabilities and values are read.

    The optional fields are what a loss needs beside them: one number for each span, for each
    action token (spans in order), or for each mark.
    """

    tokens: tuple[int, ...]
    pieces: tuple[Piece, ...]
    spans: tuple[Span, ...] = ()
    marks: tuple[Mark, ...] = ()
    temperature: float = 1.0
    key: int = 0
    """Number of the tree within what is being evaluated or trained."""
    behaviour: tuple[float, ...] = ()
    advantages: tuple[float, ...] = ()
    old_logprobs: tuple[float, ...] = ()
    ref_logprobs: tuple[float, ...] = ()
    targets: tuple[float, ...] = ()
    old_values: tuple[float, ...] = ()

    @property
    def plain(self) -> bool:
        """One branch and no window: causal attention needs no mask."""
        return all(
            piece.parent == number - 1 and piece.visible_from == 0
            for number, piece in enumerate(self.pieces)
        )

    @property
    def action_tokens(self) -> int:
        return sum(span.end - span.start for span in self.spans)

    @property
    def passage(self) -> Hashable:
        """All that a forward pass reads: rows alike in it have the same outputs."""
        return self.tokens, self.pieces, self.spans, self.marks, self.temperature


class Visibility(Protocol):
    """Which tokens of a batch's packed rows may attend to which."""

    def dense(self, device: torch.device) -> Tensor:
        """[B, 1, T, T] True where a query may attend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBatch:
    """One micro-batch.

    Rows that a forward pass would read alike (short replies in a small game) are run once: of B
    different ones, with N' action tokens and M' marks, the outputs are those of all rows.
    """

    input_ids: Tensor
    """[B, T] right-padded."""
    position_ids: Tensor
    """[B, T] place of each token in its own history."""
    mask: Visibility | None
    """Where a query may attend; None where plain causal attention will do."""
    token_rows: Tensor
    """[N'] row of the hidden state that predicts an action token."""
    token_columns: Tensor
    """[N']"""
    token_ids: Tensor
    """[N'] the action tokens themselves."""
    temperatures: Tensor
    """[N']"""
    token_places: Tensor | None
    """[N] which of the N' each action token of the rows is; None where all rows differ."""
    action_of: Tensor
    """[N] number of the action (span) within this batch."""
    actions: int
    """S"""
    mark_rows: Tensor
    """[M']"""
    mark_columns: Tensor
    """[M']"""
    mark_places: Tensor | None
    """[M] which of the M' each mark of the rows is; None where all rows differ."""
    rows: tuple[Row, ...]
    _fields: dict[str, Tensor] = field(default_factory=dict, repr=False, compare=False)

    def per_action(self, name: str) -> Tensor:
        """[S] or [N] or [M]: a field of the rows, row after row, as float32 on the device."""
        if name not in self._fields:
            values = [value for row in self.rows for value in getattr(row, name)]
            self._fields[name] = self.temperatures.new_tensor(values)
        return self._fields[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """What a forward pass gives: log-probabilities at action tokens, values at marks."""

    logprobs: Tensor
    """[N] float32"""
    entropy: Tensor | None
    """[N] float32, where asked for"""
    values: Tensor
    """[M] float32"""
