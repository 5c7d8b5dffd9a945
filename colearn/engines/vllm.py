"""vLLM engine in this process, with prefix caching and at most one LoRA adapter per request."""

from __future__ import annotations

import importlib.util
import os
import random
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from colearn.contract import TokenAnswer, TokenRequest
from colearn.errors import ColearnError, MissingExtra
from colearn.models.base import Base
from colearn.rollout.agents import AgentSpec

from .checked_engine import BadSample
from .vllm_options import cuts, engine_options, runner_variables, sampling_options
from .vllm_settings import VLLMSettings
from .vllm_weights import LoadedAdapter, VLLMCopy
from .vllm_worker import on_device, score_before_cuts

_FORCED = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # the weights are handed over as tensors, by reference
}
_DEFAULTS = {
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # training shares these threads
}


class VLLMEngine(VLLMCopy):
    """A vLLM engine for one base, which starts with the live weights.

    Errors: MissingExtra without vLLM; ConfigError for an adapter or attention heads that vLLM does
    not support.
    """

    name = "vLLM"

    def __init__(self, base: Base, roles: Mapping[str, AgentSpec], settings: VLLMSettings) -> None:
        if importlib.util.find_spec("vllm") is None:
            raise MissingExtra("vllm", "vllm")
        super().__init__(base, roles, tolerance=settings.tolerance)
        for name, value in _DEFAULTS.items():
            os.environ.setdefault(name, value)
        on_cpu = base.device.type == "cpu"
        os.environ.update(_FORCED | runner_variables(roles, on_cpu=on_cpu))
        options = engine_options(base, roles, settings, self.folder / "model", beside=True)
        self.sleeps = options.get("enable_sleep_mode", False)
        self.write_model()
        with _global_state_kept(base.device):
            from vllm import LLM

            self.llm: Any = LLM(
                **{"max_model_len": -1, "use_tqdm_on_load": False}  # -1: what the cache can hold
                | _placed(base.device)
                | options
            )
        if any(map(cuts, roles.values())):
            self.llm.collective_rpc(score_before_cuts)
        self.begin_adapters()

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

    def sample(self, requests: Sequence[TokenRequest]) -> list[TokenAnswer]:
        """Answer requests. Errors: ColearnError for a sample that its request does not allow."""
        from vllm import SamplingParams

        self.wake()
        with torch.random.fork_rng(_accelerators(self.base.device)):
            outputs: list[Any] = self.llm.generate(
                [{"prompt_token_ids": request.history.ids.tolist()} for request in requests],
                [
                    SamplingParams(**sampling_options(request, self.end_ids(request)))
                    for request in requests
                ],
                use_tqdm=False,
                lora_request=[
                    _lora_request(self.loaded_for(request.agent)) for request in requests
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

    def load_full(self, weights: Mapping[str, Tensor]) -> None:
        """Errors: RuntimeError if a running request prevents clearing the cache."""
        handed = iter(weights.items())
        self.llm.collective_rpc("reload_weights", kwargs={"weights_iterator": handed})
        if not self.llm.reset_prefix_cache():
            raise RuntimeError("vLLM kept blocks of the old weights: a request is still running")

    def load_adapter(self, adapter: LoadedAdapter) -> None:
        self.llm.llm_engine.add_lora(_lora_request(adapter))

    def unload_adapter(self, adapter: LoadedAdapter) -> None:
        self.llm.llm_engine.remove_lora(adapter.number)

    def fall_asleep(self) -> None:
        self.llm.sleep(level=1)

    def wake_up(self) -> None:
        self.llm.wake_up()

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


def _lora_request(adapter: LoadedAdapter | None) -> Any:
    from vllm.lora.request import LoRARequest

    if adapter is None:
        return None
    return LoRARequest(adapter.name, adapter.number, adapter.folder)


def _placed(device: torch.device) -> dict[str, Any]:
    """Return the options that place the engine on its model's device."""
    if device.type != "cuda":
        return {}
    return {"distributed_executor_backend": on_device(device.index or 0)}


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
