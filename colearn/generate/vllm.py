"""vLLM in this process: prefix caching, and an adapter for each request."""

from __future__ import annotations

import copy
import importlib.util
import os
import random
import shutil
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from colearn.agents import Voice
from colearn.contract import WeightUpdate
from colearn.errors import ConfigError, MissingExtra
from colearn.models.base import Base
from colearn.models.published import plain_weights

from .token_engine import TokenAnswer, TokenEngine, TokenRequest

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Values that vLLM takes for max_lora_rank."""
_ZEROS, _ADAPTER_WEIGHTS = "__zeros__", "adapter_model.safetensors"
_FORCED = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # the weights are handed over as tensors, by reference
    "VLLM_USE_V2_MODEL_RUNNER": "0",  # the sampler whose scores `_UncutScores` takes
}
_DEFAULTS = {
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # training shares these threads
}


_LOWEST_TEMPERATURE = 0.01
"""vLLM raises lower ones to this in silence; 0 is greedy."""
_CPU_OPTIONS = {
    "block_size": 32,  # the default is 128, which short histories rarely fill
    "enable_chunked_prefill": False,  # it fails on the CPU for requests with a seed
}


class VLLMEngine(TokenEngine):
    """The vLLM side of one base: its weights, and a folder for each adapter that a role has.

    It starts from the live weights. `cache_gib` is the memory of its key/value cache (default 1 on
    the CPU, 4 elsewhere), `eager` turns graph capture off (default: on the CPU), `options` go to
    `vllm.LLM` as they are.

    Errors: MissingExtra without vLLM; ConfigError for an adapter that vLLM cannot take.
    """

    name = "vLLM"

    def __init__(
        self,
        base: Base,
        roles: Mapping[str, Voice],
        *,
        cache_gib: float | None = None,
        max_length: int | None = None,
        max_rows: int = 256,
        eager: bool | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        if importlib.util.find_spec("vllm") is None:
            raise MissingExtra("vllm", "vllm")
        os.environ.update(_FORCED)
        for name, value in _DEFAULTS.items():
            os.environ.setdefault(name, value)
        on_cpu = base.device.type == "cpu"
        spoken = list(roles.values())
        tokenizer: PreTrainedTokenizerBase = spoken[0].spoken_to.tokenizer
        adapters = {role.adapter for role in spoken}
        self.device = base.device
        self._folder = TemporaryDirectory(prefix="colearn-vllm-")
        names = sorted(name for name in adapters if name is not None)
        self._adapters = {name: self._path(f"adapter-{n}") for n, name in enumerate(names)}
        # on the CPU a row without an adapter gets the last one (vllm#48421), so it is given zeros
        self._zeros = bool(names) and None in adapters and on_cpu
        model = self._path("model")
        config = copy.deepcopy(base.config)
        config.architectures = [type(base.causal).__name__]
        config.save_pretrained(model)
        tokenizer.save_pretrained(model)
        save_file(
            _untied(plain_weights(base), base.compute),
            model / "model.safetensors",
            metadata={"format": "pt"},
        )
        lora = {}
        if names:
            lora = {
                "enable_lora": True,
                "max_loras": len(names) + self._zeros,
                "max_lora_rank": _rank_limit(base, names),
            }
        with _global_state_kept(base.device):
            from vllm import LLM

            self.llm: Any = LLM(
                model=str(model),
                dtype=str(base.compute).removeprefix("torch."),
                max_model_len=max_length or -1,
                max_num_seqs=max_rows,
                kv_cache_memory_bytes=int((cache_gib or (1.0 if on_cpu else 4.0)) * 2**30),
                enable_prefix_caching=True,
                enforce_eager=on_cpu if eager is None else eager,
                # of softmax(logits / temperature), and greedy rows at temperature 1
                logprobs_mode="processed_logprobs",
                generation_config="vllm",
                use_tqdm_on_load=False,
                **lora,
                **(_CPU_OPTIONS if on_cpu else {}),
                **(options or {}),
            )
        if any(role.sampling.top_p < 1 or role.sampling.top_k is not None for role in spoken):
            self.llm.collective_rpc(_score_before_cuts)
        for name in names:
            base.model.save_pretrained(
                self._adapters[name], selected_adapters=[name], save_embedding_layers=False
            )
            self._load_adapter(name)
        if self._zeros:
            _write_zeros(self._adapter_folder(names[0]), self._path(_ZEROS))

    @property
    def place(self) -> Hashable:
        """Engines in one process share vLLM's forward context: two at once end in a bus error."""
        return "vllm"

    @property
    def max_length(self) -> int:
        """Tokens that one history can have, its action included."""
        length: int = self.llm.llm_engine.model_config.max_model_len
        return length

    @classmethod
    def check_role(cls, agent: str, role: Voice) -> None:
        if 0 < role.sampling.temperature < _LOWEST_TEMPERATURE:
            raise ConfigError(
                f"agents.{agent}.sampling.temperature: vLLM samples at {_LOWEST_TEMPERATURE} or "
                f"above, got {role.sampling.temperature}; use 0 for greedy, or run.generator: "
                "transformers"
            )

    def generate(self, requests: Sequence[TokenRequest]) -> list[TokenAnswer]:
        with torch.random.fork_rng(_accelerators(self.device)):
            outputs: list[Any] = self.llm.generate(
                [{"prompt_token_ids": list(request.prompt)} for request in requests],
                [_params(request) for request in requests],
                use_tqdm=False,
                lora_request=[self._lora_request(request.adapter) for request in requests],
            )
        return [_answer(output) for output in outputs]

    def load(self, updates: Sequence[WeightUpdate]) -> None:
        """Errors: RuntimeError where the cache cannot be emptied because a request is running."""
        for update in updates:
            if update.full is not None:
                # a tied head comes along: on the CPU the engine keeps a packed copy of it
                handed = iter(update.full.items())
                self.llm.collective_rpc("reload_weights", kwargs={"weights_iterator": handed})
            for name, tensors in update.adapters.items():
                if name in self._adapters:
                    self._write_adapter(name, tensors)
                    self._load_adapter(name)
        if not self.llm.reset_prefix_cache():
            raise RuntimeError("vLLM kept blocks of the old weights: a request is still running")

    def close(self) -> None:
        """Stop the engine and remove the folder; the engine cannot be used afterwards."""
        if hasattr(self, "llm"):
            self.llm.llm_engine.engine_core.shutdown()
            del self.llm
        self._folder.cleanup()

    def _path(self, name: str) -> Path:
        return Path(self._folder.name) / name

    def _adapter_folder(self, name: str) -> Path:
        return self._adapters[name] / name  # peft appends the name to the folder it is given

    def _write_adapter(self, name: str, tensors: Mapping[str, Tensor]) -> None:
        """Over the weights in its folder, whose settings stay."""
        save_file(
            {key: tensor.to("cpu").contiguous() for key, tensor in tensors.items()},
            self._adapter_folder(name) / _ADAPTER_WEIGHTS,
            metadata={"format": "pt"},
        )

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


def _params(request: TokenRequest) -> Any:
    from vllm import SamplingParams

    sampling = request.sampling
    return SamplingParams(
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        top_k=sampling.top_k or 0,
        max_tokens=sampling.max_tokens,
        seed=request.seed,
        logprobs=0,
        stop=list(sampling.stop),
        # the request alone says what ends an action, not the model folder's generation config
        stop_token_ids=sorted(request.end_ids),
        ignore_eos=True,
        detokenize=bool(sampling.stop),
    )


def _answer(output: Any) -> TokenAnswer:
    (drawn,) = output.outputs
    tokens = tuple(drawn.token_ids)
    return TokenAnswer(
        tokens=tokens,
        logprobs=tuple(
            entry[token].logprob for entry, token in zip(drawn.logprobs, tokens, strict=True)
        ),
        cached=output.num_cached_tokens,
    )


def _untied(weights: Mapping[str, Tensor], dtype: torch.dtype) -> dict[str, Tensor]:
    """As a checkpoint stores them: each tensor once, on the CPU."""
    once: dict[int, str] = {}
    for name, tensor in weights.items():
        once.setdefault(id(tensor), name)
    return {name: weights[name].detach().to("cpu", dtype).contiguous() for name in once.values()}


def _write_zeros(adapter: Path, folder: Path) -> None:
    """An adapter of the same shape that changes nothing."""
    shutil.copytree(adapter, folder)
    weights = load_file(adapter / _ADAPTER_WEIGHTS)
    save_file(
        {name: torch.zeros_like(tensor) for name, tensor in weights.items()},
        folder / _ADAPTER_WEIGHTS,
        metadata={"format": "pt"},
    )


class _UncutScores(nn.Module):
    """vLLM's draw by top-k and top-p, reporting log-probabilities from before the cuts.

    Its own modes report them before the temperature ('raw') or after the cuts ('processed').
    """

    def __init__(self, draw: nn.Module) -> None:
        super().__init__()
        self.draw: Any = draw

    def forward(
        self, logits: Tensor, generators: Any, top_k: Tensor | None, top_p: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """`logits` are already divided by the temperature."""
        scores = logits.log_softmax(-1, dtype=torch.float32)
        tokens, _ = self.draw.forward(logits, generators, top_k, top_p)
        return tokens, scores


def _score_before_cuts(worker: Any) -> None:
    sampler = worker.model_runner.sampler
    sampler.topk_topp_sampler = _UncutScores(sampler.topk_topp_sampler)


def _rank_limit(base: Base, adapters: Sequence[str]) -> int:
    rank = max(base.model.peft_config[name].r for name in adapters)
    if rank > _RANKS[-1]:
        raise ConfigError(
            f"models.lora.rank: vLLM takes ranks up to {_RANKS[-1]}, got {rank}; lower it or set "
            "run.generator: transformers"
        )
    return min(limit for limit in _RANKS if limit >= rank)


def _accelerators(device: torch.device) -> list[torch.device]:
    return [] if device.type == "cpu" else [device]


@contextmanager
def _global_state_kept(device: torch.device) -> Iterator[None]:
    """An engine seeds every global generator at its start and takes torch.set_num_threads away."""
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
