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
    # Python lists and one tensor of each: a tensor for every piece costs more than a small model
    ids = [[*row.tokens, *[pad] * (width - len(row.tokens))] for row in rows]
    places = [_positions(row, width) for row in rows]
    token_rows: list[int] = []
    token_columns: list[int] = []
    token_ids: list[int] = []
    temperatures: list[float] = []
    action_of: list[int] = []
    mark_rows: list[int] = []
    mark_columns: list[int] = []
    actions = 0
    for number, row in enumerate(rows):
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
    position_ids = torch.tensor(places, dtype=torch.long)
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
        input_ids=torch.tensor(ids, dtype=torch.long, device=device),
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


def _positions(row: Row, width: int) -> list[int]:
    """Each token's place in its own history; 0 at padding."""
    found: list[int] = []
    for piece in row.pieces:
        found.extend(range(piece.first_position, piece.first_position + piece.end - piece.start))
    return found + [0] * (width - len(found))


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
