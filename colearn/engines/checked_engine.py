"""Base class of engines that hold a separate copy of the weights. Tracks weight versions, validates
where actions end, and compares log-probabilities with the live model's."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Self

import torch

from colearn.contract import BatchEngine, TokenAnswer, TokenHistory, TokenRequest, WeightUpdate
from colearn.contract.types import Action, Finish
from colearn.contract.weight_sync import LoadedWeights
from colearn.errors import ColearnError, ConfigError
from colearn.models.base import Base
from colearn.models.torch_settings import rounds_to_tf32
from colearn.rollout.agents import AgentSpec, ChatFormat

TOLERANCES = {torch.float32: 1e-3, torch.bfloat16: 0.5, torch.float16: 0.1}
"""Largest gap, in nats, between a token's log-probability in the engine and in the live model.

In half precision the engine and the live model round differently. The check then detects wrong
weights, but not a single missed update at a small learning rate."""
TF32_TOLERANCE = 0.05
"""Tolerance for float32 on a CUDA device whose matrix multiplications round their inputs to
TF32."""

_PROBE_TOKENS = 144
"""Number of tokens in the prompt of a parity check. The prompt is longer than a cache block, so
that the check detects cache blocks computed with old weights."""
_PROBE_ACTION, _PROBE_SEEDS = 16, (1, 2)


class ParityError(ColearnError, RuntimeError):
    """Raised when the log-probabilities of the engine and of the trained model differ."""


class BadSample(ValueError):
    """Raised when an engine returns a sample that the request does not allow."""


class CheckedEngine(LoadedWeights, BatchEngine):
    """An engine that starts with the weights of `base`. The wrapped engine (vLLM) manages its KV
    caches.

    `sync` updates the engine, compares its log-probabilities with the live model's and raises an
    error if the gap exceeds the tolerance. `tolerance` replaces the entry of `TOLERANCES`.
    """

    name: str
    """Name of the engine in error messages."""
    lowest_temperature = 0.0
    """Minimum temperature, except for 0 (greedy decoding)."""

    def __init__(
        self, base: Base, roles: Mapping[str, AgentSpec], *, tolerance: float | None = None
    ) -> None:
        super().__init__()
        self.base, self.roles = base, dict(roles)
        allowed = TOLERANCES[base.compute]
        if rounds_to_tf32(base.device, base.compute):
            allowed = TF32_TOLERANCE
        self.tolerance = allowed if tolerance is None else tolerance
        self.prefilled_tokens = 0
        """Number of tokens run through the model to extend histories, over the engine's
        lifetime."""
        self._revision = base.revision

    @property
    @abstractmethod
    def max_length(self) -> int:
        """Maximum number of tokens of a history and its action together."""

    @abstractmethod
    def sample(self, requests: Sequence[TokenRequest]) -> list[TokenAnswer]:
        """Return one answer per request, in order; each request has one seed. The requests run
        concurrently while the caller waits."""

    @abstractmethod
    def write(self, updates: Sequence[WeightUpdate]) -> None:
        """Load weights and discard everything computed with the previous weights."""

    @classmethod
    def check_role(cls, agent: str, role: AgentSpec) -> None:
        """Check a role; called before an engine starts.

        Errors: ConfigError for a context window, or for a temperature below the engine's minimum.
        """
        if role.window is not None:
            raise ConfigError(
                f"agents.{agent}.window: {cls.name} cannot keep the positions of what a window "
                "has evicted; set run.generator: transformers, or drop the window"
            )
        if 0 < role.sampling.temperature < cls.lowest_temperature:
            raise ConfigError(
                f"agents.{agent}.sampling.temperature: {cls.name} samples at "
                f"{cls.lowest_temperature} or above, got {role.sampling.temperature}; use 0 for "
                "greedy, or run.generator: transformers"
            )

    def checked(self) -> Self:
        """Run the first parity check and return this engine. Errors: ParityError, after the engine
        has been closed."""
        try:
            self.check()
        except BaseException:
            self.close()
            raise
        return self

    def generate(self, requests: Sequence[TokenRequest]) -> list[list[TokenAnswer]]:
        """Answer requests, one list of answers per request. Errors: as for `singles`."""
        each = [self.singles(request) for request in requests]
        flat = [single for singles in each for single in singles]
        answers = iter(self.sample(flat) if flat else ())
        return [[next(answers) for _ in singles] for singles in each]

    def adapter(self, agent: str) -> str | None:
        return self.roles[agent].adapter

    def load(self, updates: Sequence[WeightUpdate]) -> None:
        """Load updates into the engine and check parity.

        Errors: ParityError, with the gap in nats, if the gap exceeds the tolerance.
        """
        revision = self.base.revision
        self.write(updates)
        self.loaded(updates)
        self._revision = revision
        self.check()

    def check(self) -> None:
        """Compare log-probabilities with the live model's, on samples of each role after a probe
        prompt.

        Errors: ParityError.
        """
        length = min(_PROBE_TOKENS, self.max_length - _PROBE_ACTION)
        vocabulary = self.vocabulary
        probe = [(number * 7919 + 11) % vocabulary for number in range(length)]
        requests = [
            TokenRequest(
                agent=agent,
                history=TokenHistory().observe(probe, None),
                sampling=replace(role.sampling, max_tokens=_PROBE_ACTION, stop=()),
                seeds=(seed,),
            )
            for agent, role in self.roles.items()
            for seed in _PROBE_SEEDS
        ]
        self.gap, worst = max(
            (self._gap(request, answer.action), request.agent)
            for answers in self.probe(requests)
            for request, answer in zip(requests, answers, strict=True)
        )
        if not self.gap <= self.tolerance:
            raise ParityError(
                f"{self.name}'s log-probabilities for agent '{worst}' are off the trained "
                f"model's by {self.gap:.3g} nats (allowed: {self.tolerance:g}); set run.generator: "
                f"transformers, or report the model and the version of {self.name}"
            )

    def probe(self, requests: Sequence[TokenRequest]) -> list[list[TokenAnswer]]:
        """Return the answers of each separate copy of the weights to the requests of a parity
        check."""
        return [self.sample(requests)]

    def singles(self, request: TokenRequest) -> list[TokenRequest]:
        """Check a request and split the request by seed.

        Errors: ConfigError if the history and its action exceed the engine's length; ParityError if
        the live weights have changed since the last `sync`.
        """
        if not self.lags and self.base.revision != self._revision:
            raise ParityError(
                f"the weights have moved since {self.name}'s last sync(); call it first"
            )
        history, limit = len(request.history), request.sampling.max_tokens
        if not history:
            raise ValueError(f"agent '{request.agent}' is asked to act on an empty history")
        if history + limit > self.max_length:
            raise ConfigError(
                f"agents.{request.agent}.sampling.max_tokens: a history of {history} tokens and "
                f"{limit} new ones exceed {self.name}'s {self.max_length}; lower it, or set "
                "run.generator: transformers"
            )
        return [replace(request, seeds=(seed,)) for seed in request.seeds]

    @property
    def vocabulary(self) -> int:
        """Number of token ids that the model can draw."""
        size: int = self.base.config.vocab_size
        return size

    def end_ids(self, request: TokenRequest) -> list[int]:
        """Token ids that end the action and are part of the action, in ascending order.

        A tokenizer may have an end token beyond the model's vocabulary. It is left out: the model
        cannot draw it, and vLLM refuses a request with it.
        """
        ends = self.roles[request.agent].chat_format.end_ids
        return sorted(number for number in ends if number < self.vocabulary)

    def answer(
        self,
        request: TokenRequest,
        tokens: Sequence[int],
        logprobs: Sequence[float],
        *,
        cached: int = 0,
    ) -> TokenAnswer:
        """Build the answer with these tokens. `cached` is the number of tokens of the history that
        were in the prefix cache.

        Errors: BadSample if the tokens are not exactly one complete action.
        """
        tokens = tuple(tokens)
        text, finish = whole_action(request, tokens, self.roles[request.agent].chat_format)
        self.prefilled_tokens += len(request.history) - cached
        action = Action(text=text, tokens=tokens, logprobs=tuple(logprobs), finish=finish)
        return TokenAnswer(action, request.history.act(tokens))

    @torch.inference_mode()
    def _gap(self, request: TokenRequest, action: Action) -> float:
        role, probe = self.roles[request.agent], request.history.ids.tolist()
        ids = torch.tensor([[*probe, *action.tokens]], device=self.base.device)
        with self.base.using(role.adapter):
            logits = self.base.logits(self.base.hidden(ids)[0, len(probe) - 1 : -1])
        scores = (logits / (role.sampling.temperature or 1.0)).log_softmax(-1)
        live = scores.gather(-1, ids[0, len(probe) :, None]).squeeze(-1)
        gaps = (live.cpu() - torch.tensor(action.logprobs)).abs()
        return float(gaps.nan_to_num(nan=torch.inf).max())


def whole_action(
    request: TokenRequest, tokens: tuple[int, ...], chat: ChatFormat
) -> tuple[str, Finish]:
    """Return a complete action's text and finish reason (an end token, the request's length limit
    or a stop string).

    Errors: BadSample if the tokens are less or more than one action.
    """
    limit, stops = request.sampling.max_tokens, request.sampling.stop
    if not tokens:
        raise BadSample("sampled no token")
    if len(tokens) > limit:
        raise BadSample(
            f"sampled {len(tokens)} tokens, more than the {limit} of sampling.max_tokens"
        )
    before = chat.decode(tokens[:-1]) if stops else ""
    if not chat.end_ids.isdisjoint(tokens[:-1]) or any(stop in before for stop in stops):
        raise BadSample("sampled tokens behind the end of an action")
    text = chat.decode(tokens)
    if tokens[-1] in chat.end_ids:
        return text, "end"
    if len(tokens) == limit:
        return text, "length"
    if not any(stop in text for stop in stops):
        raise BadSample(f"cut an action after {len(tokens)} of {limit} tokens")
    return text, "stop"
