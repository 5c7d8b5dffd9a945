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
    groups: Sequence[Sequence[Row]],
    *,
    token_budget: int,
    pad: int = 0,
    reference: bool = False,
) -> list[list[Outputs]]:
    """Compute the outputs of each row, in the given groups, and return the outputs in CPU memory.
    `reference` disables adapters."""
    outputs_by_group: list[list[Outputs | None]] = [[None] * len(group) for group in groups]
    for micro in micro_batches(groups, token_budget):
        batch = make_batch([row for _, _, row in micro], pad, network.base.device)
        outputs = network(batch, reference=reference)
        for (group, place, _), part in zip(micro, split(outputs, batch), strict=True):
            outputs_by_group[group][place] = part
    return [[part for part in group if part is not None] for group in outputs_by_group]


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
