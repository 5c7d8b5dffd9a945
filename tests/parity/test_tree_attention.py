"""Attention by blocks has the outputs and gradients of the dense mask, in double precision."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tiny import tiny_model

from colearn.contract.rows import ActionTokens, Piece, Row
from colearn.models import tree_attention
from colearn.models.base import Base
from colearn.models.network import Network
from colearn.models.tree_attention import Carrier, by_blocks
from colearn.models.tree_mask import AttentionRange, TreeMask, tree_blocks
from colearn.training.learners.batch import make_batch

CPU = torch.device("cpu")


def pieces(*parts):
    """(parent, length, first visible position) for each piece, packed one after the other."""
    packed = []
    for parent, length, visible_from in parts:
        start = packed[-1].end if packed else 0
        above = packed[parent] if parent >= 0 else None
        first = 0 if above is None else above.first_position + above.end - above.start
        packed.append(Piece(start, start + length, parent, first, visible_from))
    return tuple(packed)


FORK = pieces((-1, 3, 0), (0, 2, 0), (0, 2, 0))
DEEP = pieces((-1, 5, 0), (0, 3, 0), (0, 4, 0), (1, 2, 0), (1, 6, 0), (2, 1, 0), (2, 3, 0))
WINDOW = pieces((-1, 4, 0), (0, 3, 2), (0, 3, 2), (1, 2, 5), (2, 2, 4))
EMPTY = pieces((-1, 3, 0), (0, 0, 0), (1, 2, 0), (1, 2, 0), (0, 4, 0))
GROVE = pieces((-1, 3, 0), (-1, 2, 0), (0, 2, 0), (1, 3, 0), (0, 1, 0))
ROWS = {
    "a fork": [FORK],
    "three levels": [DEEP],
    "a window": [WINDOW],
    "an empty piece": [EMPTY],
    "two roots": [GROVE],
    "rows of other shapes": [DEEP, FORK, FORK, WINDOW],
}


def test_a_fork_is_three_causal_blocks_and_one_shared_one():
    assert tree_blocks(FORK) == (
        AttentionRange(0, 3, 0, 3),
        AttentionRange(3, 5, 3, 5),
        AttentionRange(5, 7, 5, 7),
        AttentionRange(3, 7, 0, 3),
    )


def test_a_chain_is_one_causal_block():
    assert tree_blocks(pieces((-1, 3, 0), (0, 2, 0), (1, 4, 0))) == (AttentionRange(0, 9, 0, 9),)


def test_a_window_cuts_the_keys_of_the_pieces_above():
    assert tree_blocks(pieces((-1, 4, 0), (0, 3, 2))) == (
        AttentionRange(0, 4, 0, 4),
        AttentionRange(4, 7, 4, 7),
        AttentionRange(4, 7, 2, 4),
    )


def test_a_window_shorter_than_its_piece_needs_the_dense_mask():
    assert tree_blocks(pieces((-1, 4, 0), (0, 3, 5))) is None
    assert TreeMask((pieces((-1, 4, 0), (0, 3, 5)),), 7).rows is None


@pytest.mark.parametrize("case", ROWS)
def test_blocks_cover_each_visible_pair_once(case):
    rows = ROWS[case]
    width = max(row[-1].end for row in rows)
    counted = torch.zeros((len(rows), 1, width, width), dtype=torch.long)
    for first, last, blocks in TreeMask(tuple(rows), width).rows:
        for a, b, c, d in blocks:
            pairs = torch.ones((b - a, d - c), dtype=torch.long)
            counted[first:last, :, a:b, c:d] += pairs.tril() if a == c else pairs
    dense = TreeMask(tuple(rows), width).dense(CPU).long()
    for number, row in enumerate(rows):
        end = row[-1].end
        assert counted[number, 0, :end, :end].equal(dense[number, 0, :end, :end])
        assert not counted[number, 0, end:].any() and not counted[number, 0, :, end:].any()


def rows_of(case, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [
        Row(
            tokens=tuple(torch.randint(3, 60, (one[-1].end,), generator=generator).tolist()),
            pieces=one,
            spans=tuple(
                ActionTokens(n, p.start, p.end, one[p.parent].end - 1)
                for n, p in enumerate(one)
                if p.parent >= 0 and p.end > p.start and one[p.parent].end > one[p.parent].start
            ),
            tree=number,
        )
        for number, one in enumerate(ROWS[case])
    ]


def outcome(kind, rows, monkeypatch, blocks, *, stored=torch.float64, compute=torch.float32):
    """Log-probabilities of a packed batch, and the gradient of their sum of squares."""
    network = Network(Base(tiny_model(kind, dtype=stored), compute))
    chosen = []

    def always(mask, device, width):
        chosen.append(Carrier.of(mask.rows) if blocks else None)
        return chosen[-1]

    monkeypatch.setattr("colearn.models.base.by_blocks", always)
    logprobs = network(make_batch(rows, CPU)).logprobs
    logprobs.square().sum().backward()
    assert chosen, "the batch asks for its blocks"
    gradients = [p.grad for p in network.trained().values() if p.grad is not None]
    return logprobs.detach(), torch.cat([g.flatten() for g in gradients])


@pytest.mark.parametrize("kind", ["llama", "qwen3", "gemma3"])
@pytest.mark.parametrize("case", ROWS)
def test_blocks_give_the_logprobs_and_gradients_of_the_dense_mask(case, kind, monkeypatch):
    rows = rows_of(case)
    dense = outcome(kind, rows, monkeypatch, blocks=False)
    blocks = outcome(kind, rows, monkeypatch, blocks=True)
    for ours, reference in zip(blocks, dense, strict=True):
        assert torch.allclose(ours, reference, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["llama", "qwen3", "gemma3"])
def test_blocks_are_computed_in_bfloat16_where_the_model_is(kind, monkeypatch):
    """Queries and keys come in float32 from their rotary embedding, values in bfloat16."""
    rows = rows_of("rows of other shapes")
    exact = outcome(kind, rows, monkeypatch, blocks=False, stored=torch.float32)
    half = {"stored": torch.float32, "compute": torch.bfloat16}
    blocks = outcome(kind, rows, monkeypatch, blocks=True, **half)
    for ours, reference in zip(blocks, exact, strict=True):
        # the dense mask's are 1.4 to 2.0% off in bfloat16
        assert 1e-4 < (ours - reference).norm() / reference.norm() < 3e-2


def test_long_trees_go_by_blocks_and_short_ones_by_the_mask():
    wide = pieces((-1, 100, 0), *[(0, 100, 0)] * 4, *[(1 + n // 4, 64, 0) for n in range(16)])
    assert by_blocks(TreeMask((wide,), wide[-1].end), CPU, 512) is not None
    assert by_blocks(TreeMask((FORK,), 7), CPU, 512) is None


def test_a_sliding_window_shorter_than_a_branch_takes_the_mask(monkeypatch):
    asked = []
    monkeypatch.setattr("colearn.models.base.by_blocks", lambda *given: asked.append(given))
    base = Base(tiny_model("gemma3"))
    batch = make_batch(rows_of("three levels"), CPU)
    longest = batch.mask.longest
    for window, times in ((longest, 1), (longest - 1, 1)):
        base.config.sliding_window = window
        base.hidden(batch.input_ids, position_ids=batch.position_ids, mask=batch.mask)
        assert len(asked) == times


def test_unequal_rows_share_no_blocks():
    mask = TreeMask((FORK, FORK, replace_last(FORK)), 8)
    assert [(rows.first, rows.last) for rows in mask.rows] == [(0, 2), (2, 3)]


def replace_last(row):
    return (*row[:-1], row[-1]._replace(end=row[-1].end + 1))


def test_a_model_of_another_attention_keeps_it():
    model = tiny_model("llama")
    model.set_attn_implementation("eager")
    assert Base(model).causal.config._attn_implementation == "eager"
    assert Base(tiny_model("llama")).causal.config._attn_implementation == tree_attention.NAME


def test_repeated_rows_are_read_once_by_blocks_too(monkeypatch):
    row = rows_of("three levels")[0]
    once = outcome("llama", [row], monkeypatch, blocks=True)[0]
    twice = outcome("llama", [row, replace(row, tree=9)], monkeypatch, blocks=True)[0]
    assert torch.allclose(twice, once.repeat(2))
