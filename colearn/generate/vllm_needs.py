"""Computes the memory that a vLLM engine needs on its device, for starting the engine and for
estimates."""

from __future__ import annotations

from colearn.contract import EngineNeeds

OVERHEAD = 3 * 2**30
"""Bytes that a vLLM engine uses on an accelerator besides weights and cache: prefill activations,
captured graphs and the CUDA context."""


CPU_CACHE = 2**30
"""Default size of a key/value cache on the CPU, in bytes."""
CACHE_SHARE = 0.1
"""Default fraction of an accelerator's memory for a key/value cache."""


def vllm_cache(cache_gib: float | None, *, memory: int | None) -> int:
    """Return the number of bytes of a vLLM engine's key/value cache. `memory` is the device's
    memory in bytes, or None on a CPU."""
    if cache_gib is not None:
        return int(cache_gib * 2**30)
    return CPU_CACHE if memory is None else int(CACHE_SHARE * memory)


def vllm_needs(
    weights: int, cache_gib: float | None, rows: int, *, memory: int | None
) -> EngineNeeds:
    """Return the memory needs of a vLLM engine that shares its device with a trainer."""
    cache = vllm_cache(cache_gib, memory=memory)
    held = weights + cache + (0 if memory is None else OVERHEAD)
    return EngineNeeds(held=held, cache=cache, rows=rows, apart=False)
