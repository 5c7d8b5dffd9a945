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
    """A contiguous run of tokens that one node adds to a history or a stream."""

    start: int
    end: int
    parent: int
    """Index of the previous piece of the same history; -1 at the root."""
    first_position: int
    visible_from: int
    """First position that these tokens may attend to (start of the window)."""


class ActionTokens(NamedTuple):
    """One action in a row, whose tokens are predicted and trained."""

    node: int
    """The node that the action led to."""
    start: int
    end: int
    before: int
    """Index of the token that predicts the first action token: the last one of h_t."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A position where a value is read: the last token of V's or Q's input."""

    node: int
    index: int
    inside: int | None = None
    """None: the value at the node. k: the value before token k + 1 of the action that led to the
    node."""
    agent: str | None = None
    """The agent valued; None: all agents of the reader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Packed tokens with the positions where log-probabilities and values are read.

    The optional fields are further inputs of a loss: one number per span, per action token (spans
    in order), or per mark.
    """

    tokens: tuple[int, ...]
    pieces: tuple[Piece, ...]
    spans: tuple[ActionTokens, ...] = ()
    marks: tuple[Mark, ...] = ()
    temperature: float = 1.0
    tree: int = 0
    """Index of its tree in the iteration."""
    reader: str = ""
    """The critic's reader; empty for an actor's row."""
    behaviour: tuple[float, ...] = ()
    advantages: tuple[float, ...] = ()
    old_logprobs: tuple[float, ...] = ()
    ref_logprobs: tuple[float, ...] = ()
    targets: tuple[float, ...] = ()
    old_values: tuple[float, ...] = ()
    baselines: tuple[float, ...] = ()
    """Numbers added to the value head's output at each mark; empty: nothing is added."""

    @property
    def plain(self) -> bool:
        """Whether there is one branch and no window: causal attention needs no mask."""
        return all(
            piece.parent == number - 1 and piece.visible_from == 0
            for number, piece in enumerate(self.pieces)
        )

    @property
    def action_tokens(self) -> int:
        return sum(span.end - span.start for span in self.spans)

    @property
    def passage(self) -> Hashable:
        """The input of a forward pass: rows with equal passages have equal outputs."""
        return self.tokens, self.pieces, self.spans, self.marks, self.temperature


class Visibility(Protocol):
    """Attention mask of a batch of packed rows."""

    def dense(self, device: torch.device) -> Tensor:
        """[B, 1, T, T] True if a query attends to a key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBatch:
    """One micro-batch.

    Rows with equal passages, which are common with short replies in a small game, run once. The
    batch then has B distinct rows with N' action tokens and M' marks, and their outputs are copied
    to all rows.
    """

    input_ids: Tensor
    """[B, T] right-padded."""
    position_ids: Tensor
    """[B, T] position of each token in its own history."""
    mask: Visibility | None
    """Attention mask; None for plain causal attention."""
    token_rows: Tensor
    """[N'] row of the hidden state that predicts each action token."""
    token_columns: Tensor
    """[N'] column of that hidden state."""
    token_ids: Tensor
    """[N'] the action tokens themselves."""
    temperatures: Tensor
    """[N'] sampling temperature of each action token."""
    token_places: Tensor | None
    """[N] index of each action token among the N' distinct ones; None if all rows differ."""
    action_of: Tensor
    """[N] index of the action (span) in this batch."""
    actions: int
    """S, the number of actions."""
    mark_rows: Tensor
    """[M'] row of the hidden state that each mark reads."""
    mark_columns: Tensor
    """[M'] column of that hidden state."""
    mark_places: Tensor | None
    """[M] index of each mark among the M' distinct ones; None if all rows differ."""
    rows: tuple[Row, ...]
    _fields: dict[str, Tensor] = field(default_factory=dict, repr=False, compare=False)

    @property
    def baselined(self) -> bool:
        """Whether its rows have baselines."""
        return any(row.baselines for row in self.rows)

    def per_action(self, name: str) -> Tensor:
        """[S], [N] or [M]: a field of the rows, concatenated in row order, as float32 on the
        device."""
        if name not in self._fields:
            values = [value for row in self.rows for value in getattr(row, name)]
            self._fields[name] = self.temperatures.new_tensor(values)
        return self._fields[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """Outputs of a forward pass: log-probabilities at action tokens, values at marks."""

    logprobs: Tensor
    """[N] float32"""
    entropy: Tensor | None
    """[N] float32, if requested"""
    values: Tensor
    """[M] float32"""
