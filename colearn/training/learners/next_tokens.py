"""Computes a network's next-token probabilities, in float64, at the marked positions of packed
rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from colearn.contract.rows import Row, RowBatch
from colearn.exact.model import Array
from colearn.models.network import Network

from .batch import make_batch, micro_batches

_AT_ONCE = 2**26
"""Maximum number of elements in one block of float64 logits."""

QueriedIds = Mapping[int, Sequence[int]]
"""The token ids whose probabilities are computed after a node, keyed by node."""


@torch.no_grad()
def next_probabilities(
    network: Network,
    rows: Sequence[Row],
    queries: Sequence[QueriedIds],
    *,
    temperatures: Sequence[float],
    token_budget: int,
) -> list[dict[int, Array]]:
    """Return, for each tree of `queries` and each node, the probabilities p(token | tokens up to
    the node's mark), with shape [temperatures, ids]. `Row.tree` is the index of a row's tree.

    All probabilities at a mark come from one float64 softmax, so they sum to at most 1, however
    peaked the distribution is. At temperature 0 (greedy decoding), the likeliest token has
    probability 1.
    """
    by_tree: list[dict[int, Array]] = [{} for _ in queries]
    for micro in micro_batches(rows, token_budget):
        batch = make_batch([row for _, row in micro], network.base.device)
        nodes = [(row.tree, mark.node) for _, row in micro for mark in row.marks]
        token_ids = [queries[tree].get(node, ()) for tree, node in nodes]
        tables = _tables(network, mark_states(network, batch), token_ids, temperatures)
        for (tree, node), ids, table in zip(nodes, token_ids, tables, strict=True):
            by_tree[tree][node] = table[:, : len(ids)]
    return by_tree


def mark_states(network: Network, batch: RowBatch) -> Tensor:
    """Hidden states [M, D] at the marks of a batch, in row order."""
    with network.base.using(network.adapter):
        hidden = network.base.hidden(
            batch.input_ids,
            position_ids=batch.position_ids if batch.mask is not None else None,
            mask=batch.mask,
        )
    states = hidden[batch.mark_rows, batch.mark_columns]
    return states if batch.mark_places is None else states[batch.mark_places]


def _tables(
    network: Network,
    states: Tensor,
    token_ids: Sequence[Sequence[int]],
    temperatures: Sequence[float],
) -> Iterator[Array]:
    """Compute the probabilities of each mark's ids, padded: [temperatures, maximum number of ids
    per mark]."""
    block = max(1, _AT_ONCE // network.base.config.vocab_size)
    width = max(map(len, token_ids), default=0)
    padded = [[*ids, *[0] * (width - len(ids))] for ids in token_ids]
    for start in range(0, len(token_ids), block):
        picked = torch.tensor(padded[start : start + block], device=states.device)
        with network.base.using(network.adapter):
            logits = network.base.logits(states[start : start + block]).double()
        table = torch.stack(
            [_probabilities(logits, t).gather(-1, picked) for t in temperatures], dim=1
        )
        yield from table.cpu().numpy()


def _probabilities(logits: Tensor, temperature: float) -> Tensor:
    if temperature == 0.0:
        likeliest = logits.argmax(-1, keepdim=True)
        return torch.zeros_like(logits).scatter_(-1, likeliest, 1.0)
    return (logits / temperature).softmax(-1)
