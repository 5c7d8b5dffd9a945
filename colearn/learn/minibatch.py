"""Splits an iteration's experience into minibatches of joint transitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from colearn.seeding import derive_rng
from colearn.types import Tree


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a model goes through an iteration's experience, and in what portions."""

    epochs: int
    minibatch: int | None
    """Joint transitions per optimiser step; None takes all at once."""

    def cuts(self, trees: Sequence[Tree[Any]], seed: int, iteration: int) -> list[list[list[int]]]:
        """The tree numbers of each minibatch of each epoch, in another order every time."""
        found = []
        for epoch in range(self.epochs):
            rng = derive_rng(seed, "minibatch", iteration, epoch)
            order = rng.permutation(len(trees)).tolist()
            found.append(list(minibatches(trees, self.minibatch, order)))
        return found


def minibatches(
    trees: Sequence[Tree[Any]], size: int | None, order: Sequence[int]
) -> Iterator[list[int]]:
    """Tree numbers in `order`, cut so that each minibatch holds about `size` joint transitions;
    None takes all at once. Episodes stay whole: a critic reads all turns of one in a pass.

    All minibatches are about equally large: a rest of one episode would make as large a step as the
    others, from much less.
    """
    if size is None:
        yield list(range(len(trees)))
        return
    counts = [len(tree.nodes) - 1 for tree in trees]
    total = sum(counts)
    share = total / max(1, round(total / size))
    current: list[int] = []
    taken, end = 0, share
    for number in order:
        if current and taken + counts[number] / 2 > end:
            yield current
            current, end = [], end + share
        current.append(number)
        taken += counts[number]
    yield current
