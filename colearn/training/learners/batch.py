"""Cuts rows into micro-batches by a token budget, pads micro-batches to tensors, evaluates them,
and assigns them to ranks in rounds, so that collectives stay in step."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Iterator, Sequence

import torch
from torch import Tensor

from colearn.contract.rows import Outputs, Row, RowBatch
from colearn.models.network import Network
from colearn.models.tree_mask import TreeMask

Micro = list[tuple[int, Row]]
"""A micro-batch: a list of (index in the minibatch, row)."""
Numbered = tuple[int, Micro]
"""A micro-batch with its index in the minibatch."""
Round = list[Numbered]
"""Micro-batches that run at the same time, by rank: at most one per process."""


PADDING = 0
"""Token that fills rows up to the length of the longest one."""


def make_batch(rows: Sequence[Row], device: torch.device) -> RowBatch:
    """Pad rows to the same length and build one batch. Rows with equal passages (equal model
    inputs) are stored once.

    Outputs are never read at padding, and no real token attends to padding.
    """
    distinct: dict[Hashable, Row] = {}
    for row in rows:
        distinct.setdefault(row.passage, row)
    numbers = {passage: number for number, passage in enumerate(distinct)}
    all_rows, rows = rows, list(distinct.values())
    repeated = len(rows) < len(all_rows)
    width = max(len(row.tokens) for row in rows)
    # Lists first, then one tensor each: a tensor per piece costs more than a small model
    ids = [[*row.tokens, *[PADDING] * (width - len(row.tokens))] for row in rows]
    positions = [_positions(row, width) for row in rows]
    token_rows: list[int] = []
    token_columns: list[int] = []
    token_ids: list[int] = []
    temperatures: list[float] = []
    mark_rows: list[int] = []
    mark_columns: list[int] = []
    first_tokens, first_marks = [0], [0]
    for number, row in enumerate(rows):
        for span in row.spans:
            count = span.end - span.start
            token_rows += [number] * count
            token_columns += [span.before, *range(span.start, span.end - 1)]
            token_ids += row.tokens[span.start : span.end]
            temperatures += [row.temperature] * count
        mark_rows += [number] * len(row.marks)
        mark_columns += [mark.index for mark in row.marks]
        first_tokens.append(len(token_ids))
        first_marks.append(len(mark_rows))
    read_positions = {
        number * width + column
        for number, column in (
            *zip(token_rows, token_columns, strict=True),
            *zip(mark_rows, mark_columns, strict=True),
        )
    }
    action_of: list[int] = []
    token_places: list[int] = []
    mark_places: list[int] = []
    actions = 0
    for row in all_rows:
        for span in row.spans:
            action_of += [actions] * (span.end - span.start)
            actions += 1
        if repeated:
            number = numbers[row.passage]
            token_places += range(first_tokens[number], first_tokens[number + 1])
            mark_places += range(first_marks[number], first_marks[number + 1])
    plain = all(row.plain for row in rows)
    mask = None if plain else TreeMask(tuple(row.pieces for row in rows), width)

    def integers(values: list[int] | list[list[int]]) -> Tensor:
        return torch.tensor(values, dtype=torch.long, device=device)

    return RowBatch(
        input_ids=integers(ids),
        position_ids=integers(positions),
        mask=mask,
        token_rows=integers(token_rows),
        token_columns=integers(token_columns),
        token_ids=integers(token_ids),
        temperatures=torch.tensor(temperatures, dtype=torch.float32, device=device),
        token_places=integers(token_places) if repeated else None,
        action_of=integers(action_of),
        actions=actions,
        mark_rows=integers(mark_rows),
        mark_columns=integers(mark_columns),
        mark_places=integers(mark_places) if repeated else None,
        read=integers(sorted(read_positions)),
        rows=tuple(all_rows),
    )


def _positions(row: Row, width: int) -> list[int]:
    """Position of each token in its history; 0 at padding."""
    positions: list[int] = []
    for piece in row.pieces:
        count = piece.end - piece.start
        positions.extend(range(piece.first_position, piece.first_position + count))
    return positions + [0] * (width - len(positions))


@torch.no_grad()
def evaluate(
    network: Network,
    rows: Sequence[Row],
    *,
    token_budget: int,
    reference: bool = False,
) -> list[Outputs]:
    """Run teacher-forced passes without gradient, for log-probabilities and values. Returns the
    outputs of each row, in CPU memory. `reference` disables adapters."""
    by_row: dict[int, Outputs] = {}
    for micro in micro_batches(rows, token_budget):
        batch = make_batch([row for _, row in micro], network.base.device)
        outputs = split(network(batch, reference=reference), batch)
        by_row |= {number: part for (number, _), part in zip(micro, outputs, strict=True)}
    return [by_row[number] for number in range(len(rows))]


def split(outputs: Outputs, batch: RowBatch) -> list[Outputs]:
    """Split a batch's outputs by row into detached tensors in CPU memory."""
    tokens = [row.action_tokens for row in batch.rows]
    marks = [len(row.marks) for row in batch.rows]
    return [
        Outputs(logprobs=logprobs, entropy=None, values=values)
        for logprobs, values in zip(
            outputs.logprobs.detach().cpu().split(tokens),
            outputs.values.detach().cpu().split(marks),
            strict=True,
        )
    ]


def micro_batches(rows: Sequence[Row], token_budget: int) -> list[Micro]:
    """Cut rows, starting with the longest, into micro-batches of about equal size that fit the
    token budget, padding included. Equal passages (model inputs) in a micro-batch count once. A
    passage that exceeds the budget has a separate micro-batch."""
    return joint_micro_batches([rows], token_budget)


def joint_micro_batches(rows: Sequence[Sequence[Row]], token_budget: int) -> list[Micro]:
    """As `micro_batches`, for the rows of several networks, which are numbered consecutively. Equal
    passages of different networks count separately."""
    flat_rows = list(itertools.chain.from_iterable(rows))
    ordered = sorted(
        enumerate(flat_rows), key=lambda entry: (-len(entry[1].tokens), entry[1].tokens)
    )
    passages = [(owner, row.passage) for owner, own in enumerate(rows) for row in own]
    cut = list(_cut(ordered, passages, token_budget))
    if len(cut) > 1:
        share = math.ceil(len(set(passages)) / len(cut))
        cut = list(_cut(ordered, passages, min(token_budget, share * len(ordered[0][1].tokens))))
    return cut


def split_micro(micro: Micro, rows: Sequence[Sequence[Row]]) -> list[Micro]:
    """Split a joint micro-batch by network, with the rows' numbers among the network's `rows`."""
    firsts = itertools.accumulate(map(len, rows), initial=0)
    return [
        [(number - first, row) for number, row in micro if first <= number < first + len(own)]
        for first, own in zip(firsts, rows, strict=False)
    ]


def _cut(
    ordered: Iterable[tuple[int, Row]], passage_of: Sequence[Hashable], size: int
) -> Iterator[Micro]:
    """Cut rows in order into micro-batches of at most `size` padded tokens."""
    current: Micro = []
    passages: set[Hashable] = set()
    width = 0
    for number, row in ordered:
        passage = passage_of[number]
        fits = passage in passages or width * (len(passages) + 1) <= size
        if current and not fits:
            yield current
            current, passages = [], set()
        if not current:
            width = len(row.tokens)
        current.append((number, row))
        passages.add(passage)
    if current:
        yield current


def rounds(micros: Iterable[Numbered], processes: int, *, alike: bool) -> Iterator[Round]:
    """Yields rounds of up to `processes` micro-batches, in order.

    With `alike`, all micro-batches of a round contain the same kinds of outputs: actions, marks
    (tokens with a value), both or neither. Gradients then arrive in the same order in every
    process. ZeRO-2 fills its buckets in this order; different orders would sum gradients of
    different weights.
    """
    kinds: dict[tuple[bool, bool], Round] = {}
    for number, micro in micros:
        kinds.setdefault(contents(micro) if alike else (True, True), []).append((number, micro))
    for same_kind in kinds.values():
        for start in range(0, len(same_kind), processes):
            yield same_kind[start : start + processes]


def contents(micro: Micro) -> tuple[bool, bool]:
    """Whether any row has actions, and whether any has marks."""
    return (
        any(row.action_tokens for _, row in micro),
        any(row.marks for _, row in micro),
    )
