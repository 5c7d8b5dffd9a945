"""Options with which vLLM starts and samples, in this process or in a server."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from colearn.contract import EngineNeeds, TokenRequest
from colearn.errors import ConfigError
from colearn.text.notes import note_once

if TYPE_CHECKING:
    import torch

    from colearn.models.base import Base
    from colearn.rollout.agents import AgentSpec

    from .vllm_settings import VLLMSettings

OVERHEAD = 3 * 2**30
"""Bytes that a vLLM engine uses on an accelerator besides weights and cache: prefill activations,
captured graphs and the CUDA context."""
LOWEST_TEMPERATURE = 0.01
"""Minimum temperature, except for 0 (greedy decoding). vLLM silently raises lower temperatures to
this value."""
CPU_CACHE = 2**30
"""Default size of a key/value cache on the CPU, in bytes."""
CACHE_SHARE = 0.1
"""Default fraction of an accelerator's memory for a key/value cache."""
_PREVIOUS = {"VLLM_USE_V2_MODEL_RUNNER": "0"}
_SHARE = "gpu_memory_utilization"
_CPU_OPTIONS = {
    "block_size": 32,  # the default is 128, which short histories rarely fill
    "enable_chunked_prefill": False,  # it fails on the CPU for requests with a seed
}
_CPU_HEAD_SIZES = (32, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512)
"""Attention head sizes that vLLM 0.32 supports on the CPU. With any other head size, an engine
fails at its first request."""
RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Values that vLLM accepts for max_lora_rank."""


def engine_options(
    base: Base, roles: Mapping[str, AgentSpec], settings: VLLMSettings, model: Path, *, beside: bool
) -> dict[str, Any]:
    """Return the arguments of `vllm.LLM` for the folder `model`, which are also a server's options
    (`command_line`). `beside`: whether vLLM shares its trainer's device.

    Errors: ConfigError for settings or a model that vLLM does not support.
    """
    check_heads(base)
    on_cpu = base.device.type == "cpu"
    options: dict[str, Any] = {
        "model": str(model),
        "dtype": str(base.compute).removeprefix("torch."),
        "max_num_seqs": settings.max_rows,
        "enable_prefix_caching": True,
        "enforce_eager": on_cpu if settings.eager is None else settings.eager,
        # of softmax(logits / temperature), and greedy rows at temperature 1
        "logprobs_mode": "processed_logprobs",
        "generation_config": "vllm",
        **(_CPU_OPTIONS if on_cpu else {}),
    }
    # on devices of its own a server takes what it finds
    if beside or on_cpu or settings.cache_gib is not None:
        cache = options["kv_cache_memory_bytes"] = cache_bytes(settings.cache_gib, base.device)
        if beside and _SHARE not in settings.options:
            share = memory_share(base, cache)
            options |= {} if share is None else {_SHARE: share}
    if settings.max_length is not None:
        options["max_model_len"] = settings.max_length
    if sleeps(settings.sleep, base, beside=beside):
        options["enable_sleep_mode"] = True
    if names := adapters_of(roles):
        options |= {
            "enable_lora": True,
            "max_loras": slots_of(roles),
            "max_lora_rank": rank_limit(base, names),
        }
    return options | dict(settings.options)


def command_line(options: Mapping[str, Any]) -> list[str]:
    """Return the options of `vllm.LLM` as words of a server's command line."""
    words = []
    for name, value in options.items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            words += [f"--{flag}", value if isinstance(value, str) else json.dumps(value)]
    return words


def sampling_options(request: TokenRequest, end_ids: list[int]) -> dict[str, Any]:
    """Return the fields of `vllm.SamplingParams` for a request with one seed."""
    sampling = request.sampling
    return {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k or 0,
        "max_tokens": sampling.max_tokens,
        "seed": request.seeds[0],
        "logprobs": 0,
        "stop": list(sampling.stop),
        # the request alone says what ends an action, not the model folder's generation config
        "stop_token_ids": end_ids,
        "ignore_eos": True,
        "detokenize": bool(sampling.stop),
        "skip_special_tokens": False,  # a stop string may be a tag that is a special token
    }


def adapters_of(roles: Mapping[str, AgentSpec]) -> list[str]:
    """Names of the adapters that roles use."""
    return sorted({role.adapter for role in roles.values() if role.adapter is not None})


def slots_of(roles: Mapping[str, AgentSpec]) -> int:
    """Return the number of adapters that vLLM must hold at once. The number includes an adapter
    with zero weights if some roles have no adapter."""
    names = adapters_of(roles)
    return len(names) + (bool(names) and any(role.adapter is None for role in roles.values()))


def rank_limit(base: Base, adapters: list[str]) -> int:
    """Return the smallest max_lora_rank that vLLM accepts and that is large enough for these
    adapters. Errors: ConfigError if an adapter's rank exceeds vLLM's maximum."""
    rank = max(base.model.peft_config[name].r for name in adapters)
    if rank > RANKS[-1]:
        raise ConfigError(
            f"models.lora.rank: vLLM takes ranks up to {RANKS[-1]}, got {rank}; lower it or set "
            "run.generator: transformers"
        )
    return min(limit for limit in RANKS if limit >= rank)


def check_heads(base: Base) -> None:
    """Check the head size. Errors: ConfigError if vLLM does not support it on this device."""
    if base.device.type != "cpu":
        return
    config = base.config
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    if size not in _CPU_HEAD_SIZES:
        raise ConfigError(
            f"run.generator: on a CPU vLLM has no attention heads of size {size}, only of "
            f"{', '.join(map(str, _CPU_HEAD_SIZES))}; set run.generator: transformers, or a "
            "model with such heads (of the embedded ones, embedded-vllm)"
        )


def vllm_cache(cache_gib: float | None, *, memory: int | None) -> int:
    """Return the number of bytes of a vLLM engine's key/value cache. `memory` is the device's
    memory in bytes, or None on a CPU."""
    if cache_gib is not None:
        return int(cache_gib * 2**30)
    return CPU_CACHE if memory is None else int(CACHE_SHARE * memory)


def vllm_needs(weights: int, cache_gib: float | None, *, memory: int | None) -> EngineNeeds:
    """Return the memory needs of a vLLM engine that shares its device with a trainer."""
    cache = vllm_cache(cache_gib, memory=memory)
    held_bytes = weights + cache + (0 if memory is None else OVERHEAD)
    return EngineNeeds(held=held_bytes, cache=cache)


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
