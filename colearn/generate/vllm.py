"""vLLM in this process: the same contract, with prefix caching and an adapter per agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from colearn.agents import ChatFormat
from colearn.contract import Generator, Request, Sampled, Sampling
from colearn.errors import ColearnError, ConfigError
from colearn.models.base import Base
from colearn.types import Action, Finish

from .transformers import Voice
from .vllm_engine import VllmEngine

TOLERANCES = {torch.float32: 1e-3, torch.bfloat16: 0.5, torch.float16: 0.1}
"""Largest gap, in nats, between a token's log-probability in the engine and in the live model.

In half precision the two round in different places, so the check finds wrong wiring, not one
stale update of a small learning rate."""

_LOWEST_TEMPERATURE = 0.01
"""vLLM raises lower ones to this in silence; 0 is greedy."""
_CPU_OPTIONS = {
    "block_size": 32,  # the default is 128, which short histories rarely fill
    "enable_chunked_prefill": False,  # it fails on the CPU for requests with a seed
}
_PROBE_TOKENS = 144
"""More than a block of the cache, so that a block of old weights would show."""
_PROBE_ACTION, _PROBE_SEEDS = 16, (1, 2)


class ParityError(ColearnError, RuntimeError):
    """The engine's log-probabilities are not those of the model that is trained."""


@dataclass(frozen=True, slots=True)
class TokenSession:
    """A history as ids alone: what the engine has cached of it is the engine's business."""

    tokens: tuple[int, ...]

    @property
    def length(self) -> int:
        return len(self.tokens)


class VLLMGenerator(Generator):
    """All requests of a call run as one engine call; a history's ids find their cached blocks.

    The engine starts from the live weights of `base` and is brought up to date by `sync`, which
    compares log-probabilities with the live model's and raises where they differ.
    `cache_gib` is the memory of its key/value cache in GiB (default 1 on the CPU, 4 elsewhere),
    `max_length` the longest history in tokens (default: the model's, or what the cache holds),
    `max_rows` the rows decoded together, `eager` turns graph capture off (default: on the CPU),
    `tolerance` replaces the entry of `TOLERANCES`, `options` go to `vllm.LLM` as they are.

    Errors: MissingExtra without vLLM; ConfigError for a voice that vLLM cannot honour (a context
    window, a temperature below 0.01, a LoRA rank above 512); ParityError as in `sync`.
    """

    def __init__(
        self,
        base: Base,
        voices: Mapping[str, Voice],
        *,
        cache_gib: float | None = None,
        max_length: int | None = None,
        max_rows: int = 256,
        eager: bool | None = None,
        tolerance: float | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        for agent, voice in voices.items():
            _check_voice(agent, voice)
        self.base = base
        self.voices = dict(voices)
        self.tolerance = TOLERANCES[base.compute] if tolerance is None else tolerance
        self.prefilled_tokens = 0
        """Tokens run through the model to extend histories, over the generator's life."""
        self.gap = 0.0
        """Largest difference that the last check found, in nats."""
        on_cpu = base.device.type == "cpu"
        spoken = list(voices.values())
        self.engine = VllmEngine(
            base,
            spoken[0].chat.tokenizer,
            sorted({voice.adapter for voice in spoken}, key=str),
            cuts=any(v.sampling.top_p < 1 or v.sampling.top_k is not None for v in spoken),
            cache_gib=cache_gib or (1.0 if on_cpu else 4.0),
            max_length=max_length,
            max_rows=max_rows,
            eager=on_cpu if eager is None else eager,
            options=(_CPU_OPTIONS if on_cpu else {}) | dict(options or {}),
        )
        self.check()

    def generate(self, requests: Sequence[Request], *, greedy: bool = False) -> list[list[Sampled]]:
        """Errors: ConfigError where a history and its action exceed the engine's length;
        ParityError where the live weights have moved since the last `sync`."""
        if self.engine.stale:
            raise ParityError("the weights have moved since vLLM's last sync(); call it first")
        prompts, params, adapters = [], [], []
        histories: list[tuple[int, ...]] = []
        for request in requests:
            history = self._history(request)
            histories.append(history)
            voice = self.voices[request.agent]
            sampling = request.sampling(voice.sampling, greedy=greedy)
            for seed in request.seeds:
                prompts.append({"prompt_token_ids": list(history)})
                params.append(self._params(voice.chat, sampling, seed))
                adapters.append(voice.adapter)
        if not prompts:
            return [[] for _ in requests]
        outputs = iter(self.engine.generate(prompts, params, adapters))
        return [
            [self._sampled(request.agent, history, next(outputs)) for _ in request.seeds]
            for request, history in zip(requests, histories, strict=True)
        ]

    def sync(self) -> None:
        """Hand the live weights and adapters to the engine, empty its cache, and check.

        Errors: ParityError, with the gap, where the engine is off by more than the tolerance.
        """
        self.engine.load()
        self.check()

    def check(self) -> None:
        """Compare the engine with the live model: what every voice samples after a fixed prompt.

        Errors: ParityError.
        """
        vocabulary = self.base.config.get_text_config().vocab_size
        length = min(_PROBE_TOKENS, self.engine.max_length - _PROBE_ACTION)
        probe = [(number * 7919 + 11) % vocabulary for number in range(length)]
        agents = [agent for agent in self.voices for _ in _PROBE_SEEDS]
        params = []
        for agent, seed in zip(agents, _PROBE_SEEDS * len(self.voices), strict=True):
            voice = self.voices[agent]
            settings = self._params(voice.chat, voice.sampling, seed)
            settings.max_tokens = _PROBE_ACTION
            settings.stop_token_ids, settings.stop = [], []
            params.append(settings)
        prompts = [{"prompt_token_ids": probe} for _ in agents]
        outputs = self.engine.generate(prompts, params, [self.voices[a].adapter for a in agents])
        self.gap, worst = max(
            (self._gap(self.voices[agent], probe, output), agent)
            for agent, output in zip(agents, outputs, strict=True)
        )
        if not self.gap <= self.tolerance:
            raise ParityError(
                f"vLLM's log-probabilities for agent '{worst}' are off the trained model's by "
                f"{self.gap:.3g} nats (allowed: {self.tolerance:g}); set run.generator: "
                "transformers, or report the model and the vLLM version"
            )

    def close(self) -> None:
        """Stop the engine and remove its folder."""
        self.engine.close()

    def _history(self, request: Request) -> tuple[int, ...]:
        session = request.session
        assert session is None or isinstance(session, TokenSession)
        history = (*(() if session is None else session.tokens), *request.tokens)
        if not history:
            raise ValueError(f"agent '{request.agent}' is asked to act on an empty history")
        most = self.voices[request.agent].sampling.max_tokens
        if len(history) + most > self.engine.max_length:
            raise ConfigError(
                f"agents.{request.agent}.sampling.max_tokens: a history of {len(history)} tokens "
                f"and {most} new ones exceed vLLM's {self.engine.max_length}; lower it, or set "
                "run.generator: transformers"
            )
        return history

    def _params(self, chat: ChatFormat, sampling: Sampling, seed: int) -> Any:
        from vllm import SamplingParams

        return SamplingParams(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=sampling.top_k or 0,
            max_tokens=sampling.max_tokens,
            seed=seed,
            logprobs=0,
            stop=list(sampling.stop),
            # the format alone says what ends an action, not the model folder's generation config
            stop_token_ids=sorted(chat.end_ids),
            ignore_eos=True,
            detokenize=bool(sampling.stop),
        )

    def _sampled(self, agent: str, history: tuple[int, ...], output: Any) -> Sampled:
        chat, limit = self.voices[agent].chat, self.voices[agent].sampling.max_tokens
        (drawn,) = output.outputs
        self.prefilled_tokens += len(history) - output.num_cached_tokens
        tokens = tuple(drawn.token_ids)
        finish: Finish = "stop"
        if tokens[-1] in chat.end_ids:
            finish = "end"
        elif len(tokens) >= limit:
            finish = "length"
        action = Action(
            text=chat.decode(tokens), tokens=tokens, logprobs=_logprobs(drawn), finish=finish
        )
        return Sampled(action, TokenSession(history + tokens))

    @torch.inference_mode()
    def _gap(self, voice: Voice, probe: list[int], output: Any) -> float:
        (drawn,) = output.outputs
        ids = torch.tensor([[*probe, *drawn.token_ids]], device=self.base.device)
        with self.base.using(voice.adapter):
            logits = self.base.logits(self.base.hidden(ids)[0, len(probe) - 1 : -1])
        scores = (logits / (voice.sampling.temperature or 1.0)).log_softmax(-1)
        live = scores.gather(-1, ids[0, len(probe) :, None]).squeeze(-1)
        gaps = (live.cpu() - torch.tensor(_logprobs(drawn))).abs()
        return float(gaps.nan_to_num(nan=torch.inf).max())


def _logprobs(drawn: Any) -> tuple[float, ...]:
    return tuple(
        entry[token].logprob for entry, token in zip(drawn.logprobs, drawn.token_ids, strict=True)
    )


def _check_voice(agent: str, voice: Voice) -> None:
    if voice.window is not None:
        raise ConfigError(
            f"agents.{agent}.window: vLLM cannot keep the positions of what a window has evicted; "
            "set run.generator: transformers, or drop the window"
        )
    if 0 < voice.sampling.temperature < _LOWEST_TEMPERATURE:
        raise ConfigError(
            f"agents.{agent}.sampling.temperature: vLLM samples at {_LOWEST_TEMPERATURE} or above, "
            f"got {voice.sampling.temperature}; use 0 for greedy, or run.generator: transformers"
        )
