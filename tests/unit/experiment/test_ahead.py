"""Rollouts ahead of updates, without models: which weights an iteration's trees were grown with."""

from __future__ import annotations

import torch

from colearn.experiment.ahead import Ahead
from colearn.experiment.experience import At
from colearn.experiment.processes import Processes
from colearn.rollout.counts import Counts


class NoEpisodes:
    """Stands for the episodes of a run: it grows nothing."""

    count = 1

    def draw(self, at):
        return []

    def grow(self, at, items, *, first=0, pool=None):
        return [], Counts()


def test_the_reported_staleness_counts_the_updates_since_the_trees_weights():
    """S = 2: iterations 0, 1 and 2 have the initial weights, 3 and 4 those of iteration 2."""
    ahead = Ahead(NoEpisodes(), Processes(torch.device("cpu")), {}, lambda: None, 2)
    reported = []
    for iteration in range(5):
        ahead.take(At(iteration, iteration, 0.0))
        reported.append(ahead.metrics()["staleness"])
        after = At(iteration + 1, iteration + 1, 0.0)
        ahead.refresh(after)
        ahead.published(after)
    ahead.close()
    assert reported == [0.0, 1.0, 2.0, 1.0, 2.0]
