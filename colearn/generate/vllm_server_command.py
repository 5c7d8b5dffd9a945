"""Command line and environment of a vLLM server that a run starts."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from colearn.agents import AgentSpec
from colearn.models.base import Base

from .device_transfer import Transfer
from .model_folder import rank_limit
from .server_process import ServerStart
from .vllm_server_checks import adapters_of, slots_of
from .vllm_start import cache_bytes, memory_share, runner_variables, sleeps

_ENVIRONMENT = {
    "PYTHONSAFEPATH": "1",  # `python -m` would import files of the current folder first
    "VLLM_SERVER_DEV_MODE": "1",  # weight updates and versions
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1",
    "VLLM_NO_USAGE_STATS": "1",
}
_CPU_ENVIRONMENT = {"VLLM_CPU_OMP_THREADS_BIND": "nobind"}
_FLAGS = (
    *("--host", "127.0.0.1", "--served-model-name", "base", "--generation-config", "vllm"),
    *("--logprobs-mode", "processed_logprobs", "--enable-scale-out"),
    *("--enable-prompt-tokens-details", "--enable-prefix-caching"),
    *("--worker-extension-cls", "colearn.generate.vllm_worker.WorkerExtension"),
)
_SHARE = "--gpu-memory-utilization"
_CPU_FLAGS = ("--enforce-eager", "--block-size", "32", "--no-enable-chunked-prefill")


def server_command(
    base: Base,
    roles: Mapping[str, AgentSpec],
    start: ServerStart,
    model: Path,
    port: str,
    *,
    transfer: Transfer = "files",
) -> list[str]:
    """Build the command that serves the folder `model` to these roles."""
    on_cpu = base.device.type == "cpu"
    command = [
        start.python or sys.executable,
        *("-m", "vllm.entrypoints.openai.api_server", "--model", str(model)),
        *("--port", port),
        *("--dtype", str(base.compute).removeprefix("torch.")),
        *("--max-num-seqs", str(start.max_rows)),
        *_FLAGS,
        *(_CPU_FLAGS if on_cpu else ()),
    ]
    shares_device = on_cpu or start.gpus is None
    # on devices of its own a server takes what it finds
    if shares_device or start.cache_gib is not None:
        cache = cache_bytes(start.cache_gib, base.device)
        command += ["--kv-cache-memory-bytes", str(cache)]
        if shares_device and not any(_SHARE in argument for argument in start.arguments):
            share = memory_share(base, cache)
            command += [] if share is None else [_SHARE, str(share)]
    if start.max_length is not None:
        command += ["--max-model-len", str(start.max_length)]
    if server_sleeps(base, start):
        command.append("--enable-sleep-mode")
    if transfer != "files":
        command += ["--weight-transfer-config", json.dumps({"backend": transfer})]
    if names := adapters_of(roles):
        rank = rank_limit(base, names)
        command += ["--enable-lora", "--max-loras", str(slots_of(roles))]
        command += ["--max-lora-rank", str(rank)]
    return [*command, *start.arguments]


def server_sleeps(base: Base, start: ServerStart) -> bool:
    """Whether a server that the run starts releases its memory during updates. Errors: as for
    `sleeps`."""
    return sleeps(start.sleep, base, beside=start.gpus is None)


def server_environment(
    base: Base,
    roles: Mapping[str, AgentSpec],
    start: ServerStart,
    *,
    transfer: Transfer = "files",
) -> dict[str, str]:
    """Return the server's additional environment variables; the server also inherits this process's
    environment."""
    on_cpu = base.device.type == "cpu"
    environment = _ENVIRONMENT | runner_variables(roles, on_cpu=on_cpu)
    environment |= _CPU_ENVIRONMENT if on_cpu else {}
    if transfer == "ipc":
        environment["VLLM_ALLOW_INSECURE_SERIALIZATION"] = "1"  # handles of memory are pickled
    if start.gpus is not None:
        environment["CUDA_VISIBLE_DEVICES"] = start.gpus
    return environment
