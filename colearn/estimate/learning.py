"""Memory of an update: one network's forward and backward pass over its largest micro-batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from colearn.contract.rows import Row
from colearn.learn.batch import make_batch, micro_batches
from colearn.models.network import Network

from .ledger import Ledger

Groups = Sequence[Sequence[Row]]


@dataclass(frozen=True, slots=True)
class Work:
    """The micro-batches of one optimiser step."""

    largest: tuple[Row, ...]
    micro_batches: int
    padded_tokens: int
    """Of all of them."""

    @property
    def size(self) -> int:
        """Padded tokens of the largest."""
        return _padded(self.largest)


def plan_work(groups: Groups, token_budget: int) -> Work:
    """Cut rows as a learner does."""
    cut = [
        tuple(row for _, _, row in micro) for micro in micro_batches(groups, token_budget) if micro
    ]
    return Work(max(cut, key=_padded), len(cut), sum(map(_padded, cut)))


def _padded(rows: Sequence[Row]) -> int:
    return len(rows) * max((len(row.tokens) for row in rows), default=0)


def rehearse_update(ledger: Ledger, network: Network, work: Work, *, entropy: bool) -> int:
    """Peak over what was alive before, the network's own gradients included; inside a rehearsal.

    The second of several micro-batches finds the gradients of the first.
    """
    before = ledger.live
    ledger.peak = before
    for _ in range(min(work.micro_batches, 2)):
        batch = make_batch(work.largest, 0, network.base.device)
        outputs = network(batch, entropy=entropy)
        loss = outputs.logprobs.sum() + outputs.values.sum()
        if outputs.entropy is not None:
            loss = loss + outputs.entropy.sum()
        if loss.requires_grad:
            loss.backward()
        del batch, outputs, loss
    found = ledger.peak - before
    for parameter in network.trained().values():
        parameter.grad = None
    return found
