"""A packed tree's attention mask: every token sees its own ancestors, as far as the window goes."""

from __future__ import annotations

import torch
from torch import Tensor

from colearn.contract.rows import Row


def visible(row: Row, positions: Tensor, width: int) -> Tensor:
    """[T, T] which packed tokens each packed token may attend to; padding attends to itself."""
    seen = torch.zeros((width, width), dtype=torch.bool)
    ancestors: list[list[int]] = []
    for number, piece in enumerate(row.pieces):
        above = [] if piece.parent < 0 else ancestors[piece.parent]
        ancestors.append([*above, number])
        for other in above:
            before = row.pieces[other]
            seen[piece.start : piece.end, before.start : before.end] = True
        count = piece.end - piece.start
        seen[piece.start : piece.end, piece.start : piece.end] = torch.ones(
            (count, count), dtype=torch.bool
        ).tril()
        if piece.visible_from:
            seen[piece.start : piece.end] &= positions >= piece.visible_from
    seen |= torch.eye(width, dtype=torch.bool)
    return seen
