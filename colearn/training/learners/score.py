"""Runs teacher-forced passes without gradient, for old log-probabilities, reference
log-probabilities and values."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from colearn.contract.rows import Outputs, Row, RowBatch
from colearn.models.network import Network

from .batch import make_batch, micro_batches


@torch.no_grad()
def evaluate(
    network: Network,
    rows: Sequence[Row],
    *,
    token_budget: int,
    reference: bool = False,
) -> list[Outputs]:
    """Compute the outputs of each row and return the outputs in CPU memory. `reference` disables
    adapters."""
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
