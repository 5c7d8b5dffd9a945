"""Computes the memory of an update: forward and backward pass over the largest micro-batch."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import Tensor
from torch.utils.hooks import RemovableHandle

from colearn.contract.rows import Row
from colearn.models.network import Network
from colearn.training.learners.batch import make_batch, micro_batches

from .ledger import Ledger

MicroBatch = tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Work:
    """The largest micro-batch of an optimiser step."""

    largest: MicroBatch
    several: bool
    """Whether the step has other micro-batches."""


def cut_rows(rows: Sequence[Row], token_budget: int) -> list[MicroBatch]:
    """Cut rows into micro-batches as a learner does, but treat all rows as distinct. Rows that
    differ in the run may be equal here: scripted actions, and texts under a stand-in tokenizer,
    have equal tokens."""
    numbers = itertools.count()
    distinct = [replace(row, tokens=(next(numbers), *row.tokens[1:])) for row in rows]
    return [tuple(row for _, row in micro) for micro in micro_batches(distinct, token_budget)]


def width_of(rows: MicroBatch) -> int:
    """Number of tokens of each row, including padding."""
    return max(len(row.tokens) for row in rows)


def padded(rows: MicroBatch) -> int:
    """Number of tokens of a micro-batch, including padding."""
    return len(rows) * width_of(rows)


def rehearse_update(
    ledger: Ledger, network: Network, work: Work, *, keep_gradients: bool, entropy: bool
) -> int:
    """Return the peak number of bytes that an update adds to the live bytes. Call this function
    inside a rehearsal. Without `keep_gradients`, each gradient is freed as soon as it is complete,
    as when processes partition the gradients.

    If there are several micro-batches, the second runs while the gradients of the first are in
    memory. The peak includes these gradients.
    """
    handles = [] if keep_gradients else _dropping_gradients(network)
    before = ledger.live
    ledger.begin()
    for _ in range(2 if work.several else 1):
        _rehearse(network, work, entropy)
    for handle in handles:
        handle.remove()
    for parameter in network.trained().values():
        parameter.grad = None
    return ledger.peak - before


def _dropping_gradients(network: Network) -> list[RemovableHandle]:
    def drop(parameter: Tensor) -> None:
        parameter.grad = None

    return [
        parameter.register_post_accumulate_grad_hook(drop)
        for parameter in network.trained().values()
    ]


def _rehearse(network: Network, work: Work, entropy: bool) -> None:
    batch = make_batch(work.largest, network.base.device)  # a learner keeps it until its step
    outputs = network(batch, entropy=entropy)
    loss = outputs.logprobs.sum() + outputs.values.sum()
    if outputs.entropy is not None:
        loss = loss + outputs.entropy.sum()
    if loss.requires_grad:
        loss.backward()
