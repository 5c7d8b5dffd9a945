"""Rows to padded tensors, cut into micro-batches by a token budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from colearn.contract.rows import Row, RowBatch

from .mask import visible


def make_batch(rows: Sequence[Row], pad: int, device: torch.device) -> RowBatch:
    """Pad rows to one batch; padding is never read and never attended to by a real token."""
    width = max(len(row.tokens) for row in rows)
    input_ids = torch.full((len(rows), width), pad, dtype=torch.long)
    position_ids = torch.zeros((len(rows), width), dtype=torch.long)
    token_rows: list[int] = []
    token_columns: list[int] = []
    token_ids: list[int] = []
    temperatures: list[float] = []
    action_of: list[int] = []
    mark_rows: list[int] = []
    mark_columns: list[int] = []
    actions = 0
    for number, row in enumerate(rows):
        input_ids[number, : len(row.tokens)] = torch.tensor(row.tokens, dtype=torch.long)
        for piece in row.pieces:
            count = piece.end - piece.start
            position_ids[number, piece.start : piece.end] = torch.arange(
                piece.first_position, piece.first_position + count
            )
        for span in row.spans:
            count = span.end - span.start
            token_rows += [number] * count
            token_columns += [span.before, *range(span.start, span.end - 1)]
            token_ids += row.tokens[span.start : span.end]
            temperatures += [row.temperature] * count
            action_of += [actions] * count
            actions += 1
        mark_rows += [number] * len(row.marks)
        mark_columns += [mark.index for mark in row.marks]
    plain = all(row.plain for row in rows)
    mask = (
        None
        if plain
        else torch.stack(
            [visible(row, position_ids[number], width) for number, row in enumerate(rows)]
        )[:, None]
    )

    def integers(values: list[int]) -> Tensor:
        return torch.tensor(values, dtype=torch.long, device=device)

    return RowBatch(
        input_ids=input_ids.to(device),
        position_ids=position_ids.to(device),
        mask=None if mask is None else mask.to(device),
        token_rows=integers(token_rows),
        token_columns=integers(token_columns),
        token_ids=integers(token_ids),
        temperatures=torch.tensor(temperatures, dtype=torch.float32, device=device),
        action_of=integers(action_of),
        actions=actions,
        mark_rows=integers(mark_rows),
        mark_columns=integers(mark_columns),
        rows=tuple(rows),
    )


def micro_batches(
    groups: Sequence[Sequence[Row]], token_budget: int
) -> Iterator[list[tuple[int, int, Row]]]:
    """Cut groups, widest first, into lists of (group, place in it, row) under the padded budget.

    Rows of one group stay together; a group larger than the budget is a micro-batch of its own.
    """
    widths = [max((len(row.tokens) for row in group), default=0) for group in groups]
    current: list[tuple[int, int, Row]] = []
    width = 0
    for number in sorted(range(len(groups)), key=lambda group: -widths[group]):
        rows = [(number, place, row) for place, row in enumerate(groups[number])]
        if current and width * (len(current) + len(rows)) > token_budget:
            yield current
            current = []
        if not current:
            width = widths[number]
        current = current + rows
    if current:
        yield current
