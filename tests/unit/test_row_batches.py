"""Rows that a forward pass reads alike are run once, and count each."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tiny import tiny_model

from colearn.contract.rows import Mark, Piece, Row, Span
from colearn.learn.batch import make_batch, micro_batches
from colearn.models.base import Base
from colearn.models.network import Network, ValueHead

CPU = torch.device("cpu")


def row(*tokens, action=2, temperature=1.0, advantage=0.0):
    """All tokens but the last `action` are an observation; V is read at its end."""
    seen = len(tokens) - action
    pieces = (Piece(0, seen, -1, 0, 0), Piece(seen, len(tokens), 0, seen, 0))
    return Row(
        tokens=tokens,
        pieces=pieces,
        spans=(Span(1, seen, len(tokens), seen - 1),),
        marks=(Mark(0, seen - 1),),
        temperature=temperature,
        advantages=(advantage,),
    )


ROWS = [
    row(10, 11, 12, 13, 14, advantage=1.0),
    row(20, 21, 22, 23, advantage=2.0),
    row(10, 11, 12, 13, 14, advantage=3.0),
    row(10, 11, 12, 13, 14, action=1, advantage=4.0),
    row(10, 11, 12, 13, 14, temperature=0.5, advantage=5.0),
]


def test_a_batch_holds_rows_that_are_read_alike_once():
    batch = make_batch(ROWS, 0, CPU)
    assert batch.input_ids.shape == (4, 5), "another action or temperature is another reading"
    assert batch.actions == 5
    assert batch.action_of.tolist() == [0, 0, 1, 1, 2, 2, 3, 4, 4]
    assert batch.per_action("advantages").tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_every_row_has_the_outputs_it_has_alone():
    base = Base(tiny_model("llama", dtype=torch.float64))
    network = Network(base, head=ValueHead(32))
    with torch.no_grad():
        network.head.linear.weight.fill_(0.1)
        together = network(make_batch(ROWS, 0, CPU), entropy=True)
        alone = [network(make_batch([one], 0, CPU), entropy=True) for one in ROWS]
    for name in ("logprobs", "entropy", "values"):
        expected = torch.cat([getattr(one, name) for one in alone])
        assert getattr(together, name).tolist() == pytest.approx(expected.tolist(), abs=1e-6)


def test_a_row_whose_action_is_context_is_another_reading():
    """Left without an advantage, an action stays in the tokens and is no longer a span."""
    context = replace(ROWS[0], spans=(), advantages=())
    batch = make_batch([ROWS[0], context], 0, CPU)
    assert batch.input_ids.shape[0] == 2
    assert batch.action_of.tolist() == [0, 0] and batch.token_places is None


def test_copies_do_not_fill_a_micro_batch():
    copies = [[replace(ROWS[0], key=n)] for n in range(100)]
    (micro,) = micro_batches([*copies, [ROWS[1]]], token_budget=10)
    assert [number for number, _, _ in micro] == list(range(101))
    assert len(list(micro_batches([*copies, [ROWS[1]]], token_budget=9))) == 2
