"""A recorded pass replays what the pass of each step computes, whatever changes between steps."""

from __future__ import annotations

import pytest
import torch
from operator_recorder import OperatorRecorder
from tiny import tiny_model

from colearn.engines import step_graphs
from colearn.engines.batch_slab import Slab
from colearn.engines.step_graphs import StepGraphs
from colearn.models.base import Base


@pytest.fixture(autouse=True)
def _operators_stand_in_for_graphs(monkeypatch):
    monkeypatch.setattr(step_graphs, "GraphRecorder", OperatorRecorder)
    monkeypatch.setattr(step_graphs, "SLOTS", 64)
    monkeypatch.setattr(OperatorRecorder, "made", 0)
    monkeypatch.setattr(OperatorRecorder, "replayed", 0)


@pytest.fixture(params=["qwen3", "gemma3"])
def base(request):
    return Base(tiny_model(request.param))


@torch.inference_mode()
def prefilled(base, lengths, offsets=None, room=None):
    """A slab with histories of these lengths."""
    slab = Slab(len(lengths), max(lengths) + 70, base.device, room)
    slab.offsets = offsets or [0] * len(lengths)
    width = max(lengths)
    ids = (torch.arange(len(lengths) * width).view(-1, width) * 37) % 250
    positions = slab.begin(width, width)
    seen = torch.zeros_like(ids)
    base.hidden(ids, position_ids=positions, mask=slab.mask(positions, seen), cache=slab)
    slab.lengths = list(lengths)
    return slab


class Both:
    """The same steps, recorded and as they are, each on its own slab."""

    def __init__(self, base, lengths, **how):
        self.base, self.graphs = base, StepGraphs(base)
        self.recorded, self.plain = (prefilled(base, lengths, **how) for _ in range(2))
        self.visible = torch.zeros((len(lengths), 1), dtype=torch.long)
        self.token = 5

    @torch.inference_mode()
    def step(self):
        """The largest gap between the hidden states of both."""
        self.token += 1
        rows, used = self.plain.rows, max(self.plain.lengths) + 1
        ids = (torch.arange(rows)[:, None] * 7 + self.token) % 250
        found = self.graphs.hidden(self.recorded, ids, self.visible, [None] * rows, used)
        positions = self.plain.begin(1, used)
        mask = self.plain.mask(positions, self.visible)
        expected = self.base.hidden(ids, position_ids=positions, mask=mask, cache=self.plain)
        gap = float((found - expected[:, -1]).abs().max())
        for slab in (self.recorded, self.plain):
            slab.grow()
        return gap

    @torch.inference_mode()
    def keep(self, order):
        for slab in (self.recorded, self.plain):
            slab.reduce(order)
        self.visible = self.visible[order]


def test_rows_of_unequal_lengths_grow_over_the_end_of_a_recorded_pass(base):
    both = Both(base, [55, 40, 47])
    assert max(both.step() for _ in range(20)) < 1e-5
    assert OperatorRecorder.made == 2, "one for 64 slots, one for 128"
    assert OperatorRecorder.replayed == 18


def test_rows_that_drop_the_beginning_of_their_history_keep_their_positions(base):
    both = Both(base, [20, 30], offsets=[7, 0])
    both.visible = torch.tensor([[12], [3]])
    assert max(both.step() for _ in range(5)) < 1e-5


def test_rows_that_leave_take_their_place_in_the_batch_along(base):
    both = Both(base, [10, 20, 30, 12, 14, 16, 18])
    both.visible = torch.tensor([[0], [2], [4], [0], [6], [8], [10]])
    gaps = [both.step(), both.step()]
    both.keep([0, 6, 2, 3, 4])
    gaps += [both.step(), both.step()]
    both.keep([4, 1, 2])
    gaps += [both.step(), both.step()]
    assert max(gaps) < 1e-5
    assert OperatorRecorder.made == 3, "of 7, 6 and 3 rows"


def test_another_slab_is_never_read_by_a_recording_of_the_one_before(base):
    both = Both(base, [10, 12])
    both.step(), both.step()
    with torch.inference_mode():
        both.recorded, both.plain = (
            slab.select([1, 0], 14, slab.capacity) for slab in (both.recorded, both.plain)
        )
    assert max(both.step() for _ in range(2)) < 1e-5


@pytest.mark.parametrize(
    ("rows", "computed"), [(1, 1), (2, 2), (3, 3), (5, 6), (7, 8), (9, 12), (13, 16), (33, 48)]
)
def test_a_recording_computes_at_most_half_as_many_rows_again(rows, computed):
    assert step_graphs._rows(Slab(rows, 1, torch.device("cpu"), room=100)) == computed


def test_a_recording_computes_no_row_beyond_the_slab():
    assert step_graphs._rows(Slab(5, 1, torch.device("cpu"))) == 5


@pytest.mark.parametrize(("rope", "recordable"), [("default", True), ("dynamic", False)])
def test_a_model_that_reads_its_longest_position_is_not_recorded(rope, recordable):
    base = Base(tiny_model("llama"))
    base.config.rope_parameters["rope_type"] = rope
    assert base.recordable is recordable
