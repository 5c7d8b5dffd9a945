"""Settings with which a vLLM engine starts: its memory, vLLM's model runner, and whether it
sleeps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from colearn.contract import EngineNeeds
from colearn.errors import ConfigError
from colearn.text.notes import note_once

if TYPE_CHECKING:
    import torch

    from colearn.agents import AgentSpec
    from colearn.models.base import Base

OVERHEAD = 3 * 2**30
"""Bytes that a vLLM engine uses on an accelerator besides weights and cache: prefill activations,
captured graphs and the CUDA context."""
CPU_CACHE = 2**30
"""Default size of a key/value cache on the CPU, in bytes."""
CACHE_SHARE = 0.1
"""Default fraction of an accelerator's memory for a key/value cache."""
_PREVIOUS = {"VLLM_USE_V2_MODEL_RUNNER": "0"}


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
    held_bytes = weights + cache + (0 if memory is None else OVERHEAD)
    return EngineNeeds(held=held_bytes, cache=cache, rows=rows, apart=False)


def device_memory(device: torch.device) -> int | None:
    """Memory of a CUDA device in bytes; None for other devices."""
    import torch

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
    import torch

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


def runner_variables(roles: Mapping[str, AgentSpec], *, on_cpu: bool) -> dict[str, str]:
    """Return the environment variables that choose a runner: the previous runner if vLLM runs on
    the CPU or a role uses top-p or top-k, else vLLM's default runner.

    The current runner of vLLM 0.32 reports scores before the temperature ('raw') or after top-p and
    top-k ('processed'). Without top-p and top-k, a run records the 'processed' scores. With top-p
    or top-k, colearn wraps the previous runner's sampler (`vllm_worker.py`); the current runner has
    no hook for such a wrapper.
    """
    if on_cpu:
        return dict(_PREVIOUS)
    for agent, role in roles.items():
        if cuts(role):
            note_once(
                f"run.generator: vLLM's previous model runner, because agents.{agent}.sampling has "
                "top_p or top_k, whose scores from before the cuts the current one (vLLM 0.32) "
                "does not report"
            )
            return dict(_PREVIOUS)
    return {}


def cuts(role: AgentSpec) -> bool:
    """Whether a role samples from a truncated distribution (top-p or top-k)."""
    return role.sampling.top_p < 1 or role.sampling.top_k is not None


def sleeps(setting: bool | None, base: Base, *, beside: bool) -> bool:
    """Whether an engine releases its memory during updates. If `setting` is None, the result is
    true if the engine shares a CUDA device with its trainer (`beside`).

    Errors: ConfigError if `setting` is true and the engine is not on its trainer's CUDA device.
    """
    possible = beside and base.device.type == "cuda"
    if setting and not possible:
        raise ConfigError(
            "run.generator.sleep: an engine sleeps where it shares its trainer's CUDA device, "
            "started by the run and without gpus of its own; leave it out"
        )
    return possible if setting is None else setting
