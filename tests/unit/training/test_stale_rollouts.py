"""Rollouts ahead of updates, without models: which weights an iteration's trees were grown with."""

from __future__ import annotations

import pytest
import torch

from colearn.contract import NetworkKey
from colearn.rollout.counts import Counts
from colearn.training.experience import TrainingPoint
from colearn.training.learners.copies import HeldWeights
from colearn.training.processes import Processes
from colearn.training.stale_rollouts import StaleRollouts


class Weighed:
    """An actor with one weight."""

    def __init__(self, weight):
        self.weight, self.steps = torch.tensor([weight]), 0

    def weights(self):
        return {"weight": self.weight}

    def copy(self):
        return HeldWeights(self)


class Recorded:
    """What was grown, by iteration, and the weight that generators have received last."""

    def __init__(self):
        self.grown, self.published = {}, None


class Recording(StaleRollouts):
    """Two episodes per iteration; grows nothing, and records what is drawn and the weight that
    generators had."""

    def __init__(self, record, staleness, learners, publish):
        unread = dict.fromkeys(("task", "rollout", "credit", "cast"))
        super().__init__(
            **unread,
            items=(),
            players={},
            seed=0,
            count=2,
            order="lockstep",
            processes=Processes(torch.device("cpu")),
            learners=learners,
            publish=publish,
            staleness=staleness,
        )
        self.record = record

    def draw(self, at):
        return []

    def grow(self, at, items, *, first=0, pool=None):
        self.record.grown[at.iteration] = (at.episodes, at.done, self.record.published)
        return [], Counts()


def ahead_of(episodes, actor, staleness):
    def publish():
        episodes.published = float(actor.weight)

    key = NetworkKey("actor", "team")
    return Recording(episodes, staleness, {key: actor}, publish), publish


def trained(ahead, actor, publish, iterations):
    """The loop's calls: each update adds 1 to the weight and uses a tenth of the budget. Returns
    the staleness that was reported of each iteration."""
    reported = []
    for iteration in iterations:
        ahead.take(TrainingPoint(iteration, 2 * iteration, iteration / 10))
        reported.append(ahead.metrics()["staleness"])
        after = TrainingPoint(iteration + 1, 2 * iteration + 2, (iteration + 1) / 10)
        actor.weight += 1.0
        if ahead.refresh(after):
            publish()
    return reported


def test_a_block_has_the_weights_of_its_start_and_each_iteration_its_own_items_and_temperature():
    """S = 2: 0 to 2 have the initial weight 0, 3 and 4 what generators received after update 2.
    Two episodes per iteration; a tenth of the budget each, known once some of it is used."""
    episodes, actor = Recorded(), Weighed(0.0)
    ahead, publish = ahead_of(episodes, actor, 2)
    publish()
    assert trained(ahead, actor, publish, range(4)) == [0.0, 1.0, 2.0, 1.0]
    ahead.settle()
    ahead.close()
    assert {at: grown[0] for at, grown in episodes.grown.items()} == {0: 0, 1: 2, 2: 4, 3: 6, 4: 8}
    assert [episodes.grown[at][1] for at in (0, 1, 2)] == [0.0, 0.0, 0.0]
    assert [episodes.grown[at][1] for at in (3, 4)] == pytest.approx([0.3, 0.4])
    assert [episodes.grown[at][2] for at in range(5)] == [0.0, 0.0, 0.0, 2.0, 2.0]


def test_generators_receive_weights_at_every_staleness_th_update_alone():
    ahead, _ = ahead_of(Recorded(), Weighed(0.0), 3)
    ahead.take(TrainingPoint(0, 0, 0.0))
    refreshed = [
        ahead.refresh(TrainingPoint(iteration, 2 * iteration, 0.1)) for iteration in range(1, 7)
    ]
    ahead.close()
    assert refreshed == [False, False, True, False, False, True]


@pytest.mark.parametrize("staleness", [1, 2, 3])
@pytest.mark.parametrize("stop", range(1, 8))
def test_a_run_that_is_resumed_after_any_update_grows_each_iteration_with_the_same_weights(
    tmp_path, staleness, stop
):
    """Iteration t > 0 has the weights after update S * floor((t - 1) / S); each update adds 1.

    A checkpoint is written after an update, once rollouts have ended. It must hold those weights
    with which the pending iterations were grown, which are neither always the newest that
    generators have received nor always the oldest.
    """
    last = 9
    episodes, actor = Recorded(), Weighed(0.0)
    ahead, publish = ahead_of(episodes, actor, staleness)
    publish()
    trained(ahead, actor, publish, range(stop))
    ahead.settle()
    ahead.save(tmp_path)
    ahead.close()
    again, resumed = Recorded(), Weighed(float(stop))
    ahead, publish = ahead_of(again, resumed, staleness)
    publish()
    ahead.restore(tmp_path, TrainingPoint(stop, 2 * stop, stop / 10))
    trained(ahead, resumed, publish, range(stop, last))
    ahead.settle()
    ahead.close()
    weights = {at: float(staleness * ((at - 1) // staleness)) for at in range(1, last)}
    assert {at: episodes.grown[at][2] for at in range(1, stop)} == {
        at: weights[at] for at in range(1, stop)
    }
    assert {at: again.grown[at][2] for at in range(stop, last)} == {
        at: weights[at] for at in range(stop, last)
    }
