"""Growth of a computation's cost with the length of its input, as a ratio on one machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

TIMES = 16


def growth(work: Callable[[int], Any], length: int) -> float:
    """How many times more processor time an input of `16 * length` takes than one of `length`:
    16 where the cost is linear, 256 where it is quadratic. Each is the least of three runs."""

    def cost(size: int) -> float:
        spent = []
        for _ in range(3):
            began = time.thread_time()
            work(size)
            spent.append(time.thread_time() - began)
        return min(spent)

    return cost(TIMES * length) / cost(length)


def is_linear(work: Callable[[int], Any], length: int) -> bool:
    """Between linear and quadratic in the middle (64), so that no machine's speed decides it."""
    return growth(work, length) < TIMES**1.5
