"""The cut of an iteration's experience into minibatches of joint transitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from colearn.types import Tree


def minibatches(
    trees: Sequence[Tree[Any]], size: int | None, order: Sequence[int]
) -> Iterator[list[int]]:
    """Tree numbers in `order`, cut so that each minibatch holds about `size` joint transitions;
    None takes all at once. Episodes stay whole: a critic reads all turns of one in a pass."""
    if size is None:
        yield list(range(len(trees)))
        return
    current: list[int] = []
    filled = 0
    for number in order:
        count = len(trees[number].nodes) - 1
        if current and filled + count > size:
            yield current
            current, filled = [], 0
        current.append(number)
        filled += count
    yield current
