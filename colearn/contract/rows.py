"""Data types for the inputs and outputs of learners: packed rows, micro-batches, network outputs.

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
    """A contiguous run of tokens that one node adds to an agent's history or to a critic's text
    stream."""

    start: int
    end: int
    parent: int
    """Index of the previous piece of the same history; -1 at the root."""
    first_position: int
    visible_from: int
    """First position to which these tokens may attend (start of the window)."""


class ActionTokens(NamedTuple):
    """One action in a row; its tokens are predicted and trained on."""

    node: int
    """The node that the action led to."""
    start: int
    end: int
    before: int
    """Index of the last token of h_t, which predicts the first action token."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A position in a row at which a value is read: the last token of the input of V or Q."""

    node: int
    index: int
    inside: int | None = None
    """Position within an action at which the value is read. None: at the node; k: before token k +
    1 of the action that led to the node."""
    agent: str | None = None
    """The agent whose value is read; None: all agents of the critic's reader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Packed tokens with the positions where log-probabilities and values are read.

    The optional fields are further inputs of a loss. An optional field holds one number per span
    (the tokens of one action), per action token (in the order of the spans), or per mark.
    """

    tokens: tuple[int, ...]
    pieces: tuple[Piece, ...]
    spans: tuple[ActionTokens, ...] = ()
    marks: tuple[Mark, ...] = ()
    temperature: float = 1.0
    tree: int = 0
    """Index of the row's tree in the iteration."""
    reader: str = ""
    """The agent, for an actor's row; the critic's reader, for a value model's row."""
    agents: tuple[str, ...] = ()
    """The reader's agents that a trained model plays, for a value model's row; empty: all agents of
    the reader."""
    behaviour: tuple[float, ...] = ()
    advantages: tuple[float, ...] = ()
    old_logprobs: tuple[float, ...] = ()
    ref_logprobs: tuple[float, ...] = ()
    teacher_logprobs: tuple[float, ...] = ()
    targets: tuple[float, ...] = ()
    old_values: tuple[float, ...] = ()
    baselines: tuple[float, ...] = ()
    """Numbers added to the value head's output at each mark; empty: nothing is added."""

    @property
    def plain(self) -> bool:
        """Whether plain causal attention without a mask is correct, because the row has one branch
        and no window."""
        return all(
            piece.parent == number - 1 and piece.visible_from == 0
            for number, piece in enumerate(self.pieces)
        )

    @property
    def action_tokens(self) -> int:
        return sum(span.end - span.start for span in self.spans)

    @property
    def passage(self) -> Hashable:
        """All parts of the row that affect a forward pass. Two rows with equal passages have equal
        outputs."""
        return self.tokens, self.pieces, self.spans, self.marks, self.temperature


class Visibility(Protocol):
    """Attention mask of a batch of packed rows."""

    def dense(self, device: torch.device) -> Tensor:
        """[B, 1, T, T] True if a query attends to a key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBatch:
    """One micro-batch.

    Rows with equal passages, which are common in small games with short replies, are processed only
    once. If there are equal passages, the batch has B distinct rows with N' action tokens and M'
    marks, and the outputs of the distinct rows are copied to all rows.
    """

    input_ids: Tensor
    """[B, T] right-padded."""
    position_ids: Tensor
    """[B, T] position of each token in the history to which the token belongs."""
    mask: Visibility | None
    """Attention mask; None for plain causal attention."""
    token_rows: Tensor
    """[N'] row of the hidden state that predicts each action token."""
    token_columns: Tensor
    """[N'] column of the hidden state that predicts each action token."""
    token_ids: Tensor
    """[N'] the action tokens themselves."""
    temperatures: Tensor
    """[N'] sampling temperature of each action token."""
    token_places: Tensor | None
    """[N] index of each action token among the N' action tokens of the distinct rows; None if all
    rows are distinct."""
    action_of: Tensor
    """[N] index in this batch of the action (span) to which each token belongs."""
    actions: int
    """S, the number of actions."""
    mark_rows: Tensor
    """[M'] row of the hidden state that each mark reads."""
    mark_columns: Tensor
    """[M'] column of the hidden state that each mark reads."""
    mark_places: Tensor | None
    """[M] index of each mark among the M' marks of the distinct rows; None if all rows are
    distinct."""
    read: Tensor
    """[P] positions whose hidden states are read, as unique indices into the flattened [B, T]."""
    rows: tuple[Row, ...]
    _fields: dict[str, Tensor] = field(default_factory=dict, repr=False, compare=False)

    @property
    def baselined(self) -> bool:
        """Whether the batch's rows have baselines."""
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
