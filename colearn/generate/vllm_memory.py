"""Memory of a vLLM engine on an accelerator that it shares with a trainer."""

from __future__ import annotations

import math

import torch

from colearn.errors import ConfigError
from colearn.models.base import Base

from .vllm_needs import OVERHEAD


def memory_share(base: Base, cache_bytes: int) -> float | None:
    """`gpu_memory_utilization` for an engine of this base: what it needs, as a share of the device.
    vLLM's own default is nearly all of the device, which a trainer's memory rules out: an engine
    does not start if less is free. None on other devices than CUDA's.

    Errors: ConfigError if less memory is free than the engine needs.
    """
    if base.device.type != "cuda":
        return None
    free, total = torch.cuda.mem_get_info(base.device)
    size = base.compute.itemsize
    weights = sum(parameter.numel() for parameter in base.causal.parameters()) * size
    needed = weights + cache_bytes + OVERHEAD
    if needed > free:
        raise ConfigError(
            f"run.generator: a vLLM engine needs {_gib(needed)} GiB of {base.device} (weights "
            f"{_gib(weights)}, cache {_gib(cache_bytes)}, other {_gib(OVERHEAD)}) and "
            f"{_gib(free)} are free; lower run.generator.cache_gib, or give it another device"
        )
    return min(math.ceil(1000 * needed / total) / 1000, free / total)


def _gib(number: int) -> str:
    return f"{number / 2**30:.1f}"
