"""Computes memory and cost of an update: forward and backward pass over the largest micro-batch."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.utils.hooks import RemovableHandle

from colearn.contract.rows import Row
from colearn.models.network import Network
from colearn.training.learners.batch import make_batch, micro_batches

from .ledger import Cost, Ledger

MicroBatch = tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class UpdatePass:
    """A rehearsed micro-batch."""

    peak: int
    """Peak number of bytes that the micro-batch adds to the live bytes, with its gradients."""
    cost: Cost


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


def padded(rows: MicroBatch) -> int:
    """Number of tokens of a micro-batch, including padding."""
    return len(rows) * max(len(row.tokens) for row in rows)


def rehearse_update(
    ledger: Ledger, network: Network, work: Work, *, keep_gradients: bool, entropy: bool
) -> UpdatePass:
    """Rehearse a micro-batch; call this function inside a rehearsal. Without `keep_gradients`, each
    gradient is freed as soon as it is complete, as when processes partition the gradients.

    If there are several micro-batches, the gradients of earlier ones are in memory.
    """
    handles = [] if keep_gradients else _dropping_gradients(network)
    before = ledger.live
    if work.several and keep_gradients:
        for parameter in network.trained().values():
            parameter.grad = torch.zeros_like(parameter)
    ledger.begin()
    pass_over(network, work.largest, entropy=entropy)
    for handle in handles:
        handle.remove()
    for parameter in network.trained().values():
        parameter.grad = None
    return UpdatePass(ledger.peak - before, ledger.cost)


def _dropping_gradients(network: Network) -> list[RemovableHandle]:
    def drop(parameter: Tensor) -> None:
        parameter.grad = None

    return [
        parameter.register_post_accumulate_grad_hook(drop)
        for parameter in network.trained().values()
    ]


def pass_over(network: Network, rows: MicroBatch, *, entropy: bool = False) -> None:
    """Run the forward and the backward pass over a micro-batch."""
    batch = make_batch(rows, network.base.device)  # a learner keeps it until its step
    outputs = network(batch, entropy=entropy)
    loss = outputs.logprobs.sum() + outputs.values.sum()
    if outputs.entropy is not None:
        loss = loss + outputs.entropy.sum()
    if loss.requires_grad:
        loss.backward()
