"""What a vLLM engine needs of its device, for its start and for estimates."""

from __future__ import annotations

from colearn.contract import EngineNeeds

OVERHEAD = 3 * 2**30
"""Bytes of a vLLM engine on an accelerator beside weights and cache: a prefill's activations,
captured graphs and CUDA's context."""


def vllm_cache(cache_gib: float | None, *, on_cpu: bool) -> int:
    """Bytes of a vLLM engine's key/value cache: by default 1 GiB on the CPU, 4 elsewhere."""
    return int((cache_gib or (1.0 if on_cpu else 4.0)) * 2**30)


def vllm_needs(weights: int, cache_gib: float | None, rows: int, *, on_cpu: bool) -> EngineNeeds:
    """Those of a vLLM engine that shares its device with a trainer."""
    cache = vllm_cache(cache_gib, on_cpu=on_cpu)
    held = weights + cache + (0 if on_cpu else OVERHEAD)
    return EngineNeeds(held=held, cache=cache, rows=rows, apart=False)
