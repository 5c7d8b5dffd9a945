"""Splits an iteration's experience into minibatches of joint transitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from colearn.contract.seeding import derive_rng
from colearn.contract.types import Tree

MinibatchUnit = Literal["joint_actions", "episodes"]


@dataclass(frozen=True, slots=True)
class UpdateSchedule:
    """Epochs and minibatch size of a model's update."""

    epochs: int
    minibatch: int | None
    """Size of an optimiser step's data, counted in `unit`; None: one step for all of it."""
    unit: MinibatchUnit = "joint_actions"

    def minibatches(
        self, trees: Sequence[Tree[Any]], seed: int, iteration: int
    ) -> list[list[list[int]]]:
        """Return, for each epoch, the tree indices of each minibatch. Trees are reshuffled in every
        epoch."""
        epochs = []
        for epoch in range(self.epochs):
            rng = derive_rng(seed, "minibatch", iteration, epoch)
            order = rng.permutation(len(trees)).tolist()
            epochs.append(list(minibatches(trees, self.minibatch, order, self.unit)))
        return epochs


def minibatches(
    trees: Sequence[Tree[Any]],
    size: int | None,
    order: Sequence[int],
    unit: MinibatchUnit = "joint_actions",
) -> Iterator[list[int]]:
    """Split the tree indices of `order`, in this order, into minibatches of about `size` joint
    transitions or episodes. With None, there is one minibatch.

    Episodes stay whole, since a critic reads all turns of an episode in one pass. Minibatches have
    about equal size, since a small last minibatch would cause an optimiser step of the usual size
    from much less data.
    """
    if size is None:
        yield list(range(len(trees)))
        return
    counts = [1 if unit == "episodes" else len(tree.nodes) - 1 for tree in trees]
    total = sum(counts)
    share = total / max(1, round(total / size))
    current: list[int] = []
    cumulative, end = 0, share
    for number in order:
        if current and cumulative + counts[number] / 2 > end:
            yield current
            current, end = [], end + share
        current.append(number)
        cumulative += counts[number]
    yield current
