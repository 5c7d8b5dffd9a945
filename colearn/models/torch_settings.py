"""Torch's settings for a process: the number of CPU threads, by the size of the models, and
rounding in float32 matrix multiplications on CUDA devices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import nn

LARGE = 2**22
"""Number of parameters above which a model spends more time in matrix multiplications than in
Python and in thread synchronisation. Below this number, one thread is faster
(`benchmarks/results/threads.md`).
"""


def use_threads(chosen: int | None, models: Iterable[nn.Module]) -> int:
    """Set the number of torch's threads to `chosen`. If `chosen` is None, use one thread if every
    model is small, else torch's default (number of cores, or OMP_NUM_THREADS). Returns the previous
    number."""
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
    """Context that sets the number of torch's threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def use_tf32(chosen: bool) -> bool:
    """Set whether float32 matrix multiplications on CUDA devices round their inputs to TF32.
    Returns the previous setting. No effect on other devices."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = chosen
    return before


def rounds_to_tf32(device: torch.device, compute: torch.dtype) -> bool:
    """Whether matrix multiplications in this type round their inputs to TF32 on this device."""
    rounds = device.type == "cuda" and compute == torch.float32
    return rounds and torch.backends.cuda.matmul.allow_tf32
