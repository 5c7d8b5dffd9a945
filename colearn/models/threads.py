"""CPU threads of torch, chosen by the size of a process's models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import nn

LARGE = 2**22
"""Parameters from which a model spends more time in products than in Python and in waiting for
threads: below, one thread is faster (`benchmarks/results/threads.md`)."""


def use_threads(chosen: int | None, models: Iterable[nn.Module]) -> int:
    """Set torch's threads to `chosen`; None: one where every model is small, else torch's own
    number (the cores, or OMP_NUM_THREADS). Returns the number before."""
    before = torch.get_num_threads()
    if chosen is None and all(parameter_count(model) < LARGE for model in models):
        chosen = 1
    if chosen is not None:
        torch.set_num_threads(chosen)
    return before


def parameter_count(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Set torch's threads within the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
