"""Memory of a vLLM engine on an accelerator that the engine shares with a trainer."""

from __future__ import annotations

import math

import torch

from colearn.errors import ConfigError
from colearn.models.base import Base
from colearn.text.notes import note_once

from .vllm_needs import CACHE_SHARE, OVERHEAD, vllm_cache


def device_memory(device: torch.device) -> int | None:
    """Memory of a CUDA device in bytes; None for other devices."""
    if device.type != "cuda":
        return None
    memory: int = torch.cuda.mem_get_info(device)[1]
    return memory


def cache_bytes(cache_gib: float | None, device: torch.device) -> int:
    """Return `vllm_cache` for a device; print a note if the default for accelerators is used."""
    memory = device_memory(device)
    cache = vllm_cache(cache_gib, memory=memory)
    if cache_gib is None and memory is not None:
        note_once(f"run.generator.cache_gib: {_gib(cache)}, {CACHE_SHARE:.0%} of {device}'s memory")
    return cache


def memory_share(base: Base, cache: int) -> float | None:
    """`gpu_memory_utilization` for an engine of this base: the memory that the engine needs, as a
    fraction of the device. vLLM's default is nearly the whole device. If a trainer uses the same
    device, less memory is free, and an engine with the default would not start. None on devices
    other than CUDA.

    Errors: ConfigError if less memory is free than the engine needs.
    """
    if base.device.type != "cuda":
        return None
    free, total = torch.cuda.mem_get_info(base.device)
    size = base.compute.itemsize
    weights = sum(parameter.numel() for parameter in base.causal.parameters()) * size
    needed = weights + cache + OVERHEAD
    if needed > free:
        raise ConfigError(
            f"run.generator: a vLLM engine needs {_gib(needed)} GiB of {base.device} (weights "
            f"{_gib(weights)}, cache {_gib(cache)}, other {_gib(OVERHEAD)}) and "
            f"{_gib(free)} are free; lower run.generator.cache_gib, or give it another device"
        )
    return min(math.ceil(1000 * needed / total) / 1000, free / total)


def _gib(number: int) -> str:
    return f"{number / 2**30:.1f}"
