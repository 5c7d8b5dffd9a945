"""vLLM engine in this process, with prefix caching and at most one LoRA adapter per request."""

from __future__ import annotations

import importlib.util
import os
import random
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from colearn.agents import AgentSpec
from colearn.contract import TokenAnswer, TokenRequest, WeightUpdate
from colearn.errors import ColearnError, ConfigError, MissingExtra
from colearn.models.base import Base
from colearn.models.weight_update import each_once

from .checked_engine import BadSample, CheckedEngine
from .model_folder import (
    rank_limit,
    write_adapter,
    write_adapter_weights,
    write_model,
    write_zeros,
)
from .vllm_start import cache_bytes, cuts, memory_share, runner_variables, sleeps
from .vllm_worker import on_device, score_before_cuts

_ZEROS = "__zeros__"
_FORCED = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # the weights are handed over as tensors, by reference
}
_DEFAULTS = {
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # training shares these threads
}


_SHARE = "gpu_memory_utilization"
_LOWEST_TEMPERATURE = 0.01
"""Minimum temperature, except for 0 (greedy decoding). vLLM silently raises lower temperatures to
this value."""
_CPU_HEAD_SIZES = (32, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512)
"""Attention head sizes that vLLM 0.32 supports on the CPU. With any other head size, an engine
fails at its first request."""
_CPU_OPTIONS = {
    "block_size": 32,  # the default is 128, which short histories rarely fill
    "enable_chunked_prefill": False,  # it fails on the CPU for requests with a seed
}


class VLLMEngine(CheckedEngine):
    """A vLLM engine for one base, with a peft folder for each adapter of a role.

    The engine starts with the live weights. `cache_gib` is the memory of the key/value cache in GiB
    (default: see `vllm_cache`). `eager` skips compilation and graph capture (default: on the
    CPU). `sleep` is the setting of `sleeps`. `options` are passed to `vllm.LLM` unchanged.

    Errors: MissingExtra without vLLM; ConfigError for an adapter or attention heads that vLLM does
    not support.
    """

    name = "vLLM"

    def __init__(
        self,
        base: Base,
        roles: Mapping[str, AgentSpec],
        *,
        cache_gib: float | None = None,
        max_length: int | None = None,
        max_rows: int = 256,
        eager: bool | None = None,
        sleep: bool | None = None,
        options: Mapping[str, Any] | None = None,
        tolerance: float | None = None,
    ) -> None:
        super().__init__(base, roles, tolerance=tolerance)
        if importlib.util.find_spec("vllm") is None:
            raise MissingExtra("vllm", "vllm")
        check_heads(base)
        self._sleeps, self._asleep = sleeps(sleep, base, beside=True), False
        for name, value in _DEFAULTS.items():
            os.environ.setdefault(name, value)
        on_cpu = base.device.type == "cpu"
        os.environ.update(_FORCED | runner_variables(roles, on_cpu=on_cpu))
        specs = list(roles.values())
        adapters = {role.adapter for role in specs}
        self.device = base.device
        self._folder = TemporaryDirectory(prefix="colearn-vllm-")
        names = sorted(name for name in adapters if name is not None)
        self._adapters = {name: self._path(f"adapter-{n}") for n, name in enumerate(names)}
        # on the CPU a row without an adapter gets the last one (vllm#48421), so it is given zeros
        self._zeros = bool(names) and None in adapters and on_cpu
        model = self._path("model")
        write_model(model, base, specs[0].chat_format.tokenizer)
        lora = {}
        if names:
            lora = {
                "enable_lora": True,
                "max_loras": len(names) + self._zeros,
                "max_lora_rank": rank_limit(base, names),
            }
        cache = cache_bytes(cache_gib, base.device)
        share = {}
        if _SHARE not in (options or {}) and (needed := memory_share(base, cache)):
            share[_SHARE] = needed
        with _global_state_kept(base.device):
            from vllm import LLM

            self.llm: Any = LLM(
                model=str(model),
                dtype=str(base.compute).removeprefix("torch."),
                max_model_len=max_length or -1,
                max_num_seqs=max_rows,
                kv_cache_memory_bytes=cache,
                **share,
                enable_prefix_caching=True,
                enforce_eager=on_cpu if eager is None else eager,
                **_placed(base.device),
                # of softmax(logits / temperature), and greedy rows at temperature 1
                logprobs_mode="processed_logprobs",
                generation_config="vllm",
                use_tqdm_on_load=False,
                **({"enable_sleep_mode": True} if self._sleeps else {}),
                **lora,
                **(_CPU_OPTIONS if on_cpu else {}),
                **(options or {}),
            )
        if any(map(cuts, specs)):
            self.llm.collective_rpc(score_before_cuts)
        for name in names:
            write_adapter(self._adapters[name], base, name)
            self._load_adapter(name)
        if self._zeros:
            write_zeros(self._adapter_folder(names[0]), self._path(_ZEROS))

    @property
    def place(self) -> Hashable:
        """Key of the place where the engine runs. All engines have the same key and therefore take
        turns: they share vLLM's forward context, and two concurrent engines crash with a bus
        error."""
        return "vllm"

    @property
    def max_length(self) -> int:
        """Maximum number of tokens in a history, including the action."""
        length: int = self.llm.llm_engine.model_config.max_model_len
        return length

    @classmethod
    def check_role(cls, agent: str, role: AgentSpec) -> None:
        super().check_role(agent, role)
        check_temperature(agent, role)

    def sample(self, requests: Sequence[TokenRequest]) -> list[TokenAnswer]:
        """Answer requests. Errors: ColearnError for a sample that its request does not allow."""
        self._wake()
        with torch.random.fork_rng(_accelerators(self.device)):
            outputs: list[Any] = self.llm.generate(
                [{"prompt_token_ids": request.history.ids.tolist()} for request in requests],
                [_params(request, self.end_ids(request)) for request in requests],
                use_tqdm=False,
                lora_request=[
                    self._lora_request(self.adapter(request.agent)) for request in requests
                ],
            )
        try:
            return [
                self._read(output, request)
                for output, request in zip(outputs, requests, strict=True)
            ]
        except BadSample as error:
            raise ColearnError(
                f"run.generator: vLLM {error}; set run.generator: transformers, or report the "
                "model and the version of vLLM"
            ) from None

    def write(self, updates: Sequence[WeightUpdate]) -> None:
        """Load updates. Errors: RuntimeError if a running request prevents clearing the cache."""
        self._wake()
        for update in updates:
            if update.full is not None:
                # on the CPU a tied head keeps a packed copy, made anew from its own name only
                on_cpu = self.device.type == "cpu"
                handed = iter((update.full if on_cpu else each_once(update.full)).items())
                self.llm.collective_rpc("reload_weights", kwargs={"weights_iterator": handed})
            for name, tensors in update.adapters.items():
                if name in self._adapters:
                    write_adapter_weights(self._adapter_folder(name), tensors)
                    self._load_adapter(name)
        if not self.llm.reset_prefix_cache():
            raise RuntimeError("vLLM kept blocks of the old weights: a request is still running")

    def rest(self) -> None:
        """Move the weights to CPU memory and free the cache."""
        if self._sleeps and not self._asleep:
            self.llm.sleep(level=1)
            self._asleep = True

    def _wake(self) -> None:
        if self._asleep:
            self.llm.wake_up()
            self._asleep = False

    def close(self) -> None:
        """Stop the engine and remove the folder; the engine cannot be used afterwards."""
        if hasattr(self, "llm"):
            core = self.llm.llm_engine.engine_core
            if torch.distributed.is_initialized() and torch.distributed.get_world_size() > 1:
                # the core's own shutdown would end the process group, which the run still needs
                core._finalizer.detach()
                core.engine_core.model_executor.shutdown()
            else:
                core.shutdown()
            del self.llm
        self._folder.cleanup()

    def _read(self, output: Any, request: TokenRequest) -> TokenAnswer:
        (completion,) = output.outputs
        tokens = tuple(completion.token_ids)
        logprobs = [
            entry[token].logprob for entry, token in zip(completion.logprobs, tokens, strict=True)
        ]
        return self.answer(request, tokens, logprobs, cached=output.num_cached_tokens)

    def _path(self, name: str) -> Path:
        return Path(self._folder.name) / name

    def _adapter_folder(self, name: str) -> Path:
        return self._adapters[name] / name  # peft appends the name to the folder it is given

    def _load_adapter(self, name: str) -> None:
        # without load_inplace an engine that knows the number keeps the old tensors
        self.llm.llm_engine.add_lora(self._lora_request(name, load_inplace=True))

    def _lora_request(self, name: str | None, *, load_inplace: bool = False) -> Any:
        from vllm.lora.request import LoRARequest

        if name is None:
            if not self._zeros:
                return None
            return LoRARequest(_ZEROS, len(self._adapters) + 1, str(self._path(_ZEROS)))
        number = list(self._adapters).index(name) + 1
        folder = str(self._adapter_folder(name))
        return LoRARequest(name, number, folder, load_inplace=load_inplace)


def _placed(device: torch.device) -> dict[str, Any]:
    """Return the options that place the engine on its model's device."""
    if device.type != "cuda":
        return {}
    return {"distributed_executor_backend": on_device(device.index or 0)}


def check_temperature(agent: str, role: AgentSpec) -> None:
    """Check a role's temperature. Errors: ConfigError if vLLM would raise the temperature to its
    minimum."""
    if 0 < role.sampling.temperature < _LOWEST_TEMPERATURE:
        raise ConfigError(
            f"agents.{agent}.sampling.temperature: vLLM samples at {_LOWEST_TEMPERATURE} or above, "
            f"got {role.sampling.temperature}; use 0 for greedy, or run.generator: transformers"
        )


def check_heads(base: Base) -> None:
    """Check the head size. Errors: ConfigError if vLLM does not support it on this device."""
    config = base.config
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    if base.device.type == "cpu" and size not in _CPU_HEAD_SIZES:
        raise ConfigError(
            f"run.generator: on a CPU vLLM has no attention heads of size {size}, only of "
            f"{', '.join(map(str, _CPU_HEAD_SIZES))}; set run.generator: transformers, or a "
            "model with such heads (of the embedded ones, embedded-vllm)"
        )


def _params(request: TokenRequest, end_ids: list[int]) -> Any:
    from vllm import SamplingParams

    sampling = request.sampling
    return SamplingParams(
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        top_k=sampling.top_k or 0,
        max_tokens=sampling.max_tokens,
        seed=request.seeds[0],
        logprobs=0,
        stop=list(sampling.stop),
        # the request alone says what ends an action, not the model folder's generation config
        stop_token_ids=end_ids,
        ignore_eos=True,
        detokenize=bool(sampling.stop),
        skip_special_tokens=False,  # a stop string may be a tag that is a special token
    )


def _accelerators(device: torch.device) -> list[torch.device]:
    return [] if device.type == "cpu" else [device]


@contextmanager
def _global_state_kept(device: torch.device) -> Iterator[None]:
    """Context that restores global state at its end, because an engine seeds all global random
    generators and replaces torch.set_num_threads."""
    python, legacy = random.getstate(), np.random.get_state()
    threads, set_threads = torch.get_num_threads(), torch.set_num_threads
    with torch.random.fork_rng(_accelerators(device)):
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(legacy)
            torch.set_num_threads = set_threads
            torch.set_num_threads(threads)
