"""Generator over any token engine: histories, ends of actions, versions, parity check."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import torch

from colearn.agents import Voice
from colearn.contract import Generator, Request, Sampled, WeightUpdate
from colearn.contract.weight_sync import LoadedWeights
from colearn.errors import ColearnError, ConfigError
from colearn.models.base import Base
from colearn.types import Action, Finish

from .token_engine import TokenAnswer, TokenEngine, TokenRequest

TOLERANCES = {torch.float32: 1e-3, torch.bfloat16: 0.5, torch.float16: 0.1}
"""Largest gap, in nats, between a token's log-probability in the engine and in the live model.

In half precision the two round differently, so the check detects wrong wiring, not a single
stale update of a small learning rate."""

_PROBE_TOKENS = 144
"""Longer than a cache block, so that a block of old weights is detected."""
_PROBE_ACTION, _PROBE_SEEDS = 16, (1, 2)


class ParityError(ColearnError, RuntimeError):
    """The engine's log-probabilities differ from the trained model's."""


@dataclass(frozen=True, slots=True)
class TokenSession:
    """A history as ids; caching is left to the engine."""

    tokens: tuple[int, ...]
    lane: int = 0
    """The engine's replica whose cache holds it."""

    @property
    def length(self) -> int:
        return len(self.tokens)


def check_roles(engine: type[TokenEngine], roles: Mapping[str, Voice]) -> None:
    """Check roles before an engine starts.

    Errors: ConfigError for a context window, or for a role the engine does not support.
    """
    for agent, role in roles.items():
        if role.window is not None:
            raise ConfigError(
                f"agents.{agent}.window: {engine.name} cannot keep the positions of what a window "
                "has evicted; set run.generator: transformers, or drop the window"
            )
        engine.check_role(agent, role)


class TokenGenerator(LoadedWeights, Generator):
    """Runs all requests of a call in one call of the engine; a history is its ids.

    The engine starts from the weights of `base`. `sync` updates it, compares its log-probabilities
    with the live model's and raises if they differ. `tolerance` replaces the entry of `TOLERANCES`.

    Errors: ParityError as in `load`.
    """

    def __init__(
        self,
        base: Base,
        roles: Mapping[str, Voice],
        engine: TokenEngine,
        *,
        tolerance: float | None = None,
    ) -> None:
        super().__init__()
        self.base, self.roles, self.engine = base, dict(roles), engine
        self.tolerance = TOLERANCES[base.compute] if tolerance is None else tolerance
        self.prefilled_tokens = 0
        """Tokens run through the model to extend histories, over the generator's life."""
        self._revision = base.revision
        try:
            self.check()
        except BaseException:
            self.close()
            raise

    @property
    def place(self) -> Hashable:
        return self.engine.place

    def adapter(self, agent: str) -> str | None:
        return self.roles[agent].adapter

    def generate(self, requests: Sequence[Request], *, greedy: bool = False) -> list[list[Sampled]]:
        """Errors: ConfigError if a history and its action exceed the engine's length;
        ParityError if the live weights have changed since the last `sync`."""
        if not self.lags and self.base.revision != self._revision:
            name = self.engine.name
            raise ParityError(f"the weights have moved since {name}'s last sync(); call it first")
        sessions = [
            TokenSession(self._history(request), lane)
            for request, lane in zip(requests, self._lanes(requests), strict=True)
        ]
        asked = [
            self._request(request, session, seed, greedy)
            for request, session in zip(requests, sessions, strict=True)
            for seed in request.seeds
        ]
        answers = iter(self.engine.generate(asked) if asked else ())
        return [
            [self._sampled(request.agent, session, next(answers)) for _ in request.seeds]
            for request, session in zip(requests, sessions, strict=True)
        ]

    def load(self, updates: Sequence[WeightUpdate]) -> None:
        """Load updates into the engine, and check.

        Errors: ParityError, with the gap, if it exceeds the tolerance.
        """
        revision = self.base.revision
        self.engine.load(updates)
        self.loaded(updates)
        self._revision = revision
        self.check()

    def check(self) -> None:
        """Compare log-probabilities with the live model's, on each role's samples after a probe,
        from each of the engine's replicas.

        Errors: ParityError.
        """
        length = min(_PROBE_TOKENS, self.engine.max_length - _PROBE_ACTION)
        vocabulary = self.base.config.vocab_size
        probe = tuple((number * 7919 + 11) % vocabulary for number in range(length))
        agents, asked = [], []
        for (agent, role), seed, lane in product(
            self.roles.items(), _PROBE_SEEDS, range(self.engine.lanes)
        ):
            agents.append(agent)
            asked.append(
                TokenRequest(
                    prompt=probe,
                    adapter=role.adapter,
                    sampling=replace(role.sampling, max_tokens=_PROBE_ACTION, stop=()),
                    seed=seed,
                    end_ids=frozenset(),
                    lane=lane,
                )
            )
        answers = self.engine.generate(asked)
        self.gap, worst = max(
            (self._gap(self.roles[agent], probe, answer), agent)
            for agent, answer in zip(agents, answers, strict=True)
        )
        if not self.gap <= self.tolerance:
            raise ParityError(
                f"{self.engine.name}'s log-probabilities for agent '{worst}' are off the trained "
                f"model's by {self.gap:.3g} nats (allowed: {self.tolerance:g}); set run.generator: "
                f"transformers, or report the model and the version of {self.engine.name}"
            )

    def close(self) -> None:
        """Stop the engine."""
        self.engine.close()

    def _lanes(self, requests: Sequence[Request]) -> list[int]:
        """The engine's replica for each request: its session's, or the next in turn for a new
        history, from one that the first seed of these determines."""
        new = [number for number, request in enumerate(requests) if request.session is None]
        first = next((seed for number in new for seed in requests[number].seeds), 0)
        lanes = {number: (first + turn) % self.engine.lanes for turn, number in enumerate(new)}
        for number, request in enumerate(requests):
            if request.session is not None:
                assert isinstance(request.session, TokenSession)
                lanes[number] = request.session.lane
        return [lanes[number] for number in range(len(requests))]

    def _history(self, request: Request) -> tuple[int, ...]:
        session = request.session
        assert session is None or isinstance(session, TokenSession)
        history = (*(() if session is None else session.tokens), *request.tokens)
        if not history:
            raise ValueError(f"agent '{request.agent}' is asked to act on an empty history")
        most = self.roles[request.agent].sampling.max_tokens
        if len(history) + most > self.engine.max_length:
            raise ConfigError(
                f"agents.{request.agent}.sampling.max_tokens: a history of {len(history)} tokens "
                f"and {most} new ones exceed {self.engine.name}'s {self.engine.max_length}; lower "
                "it, or set run.generator: transformers"
            )
        return history

    def _request(
        self, request: Request, session: TokenSession, seed: int, greedy: bool
    ) -> TokenRequest:
        role = self.roles[request.agent]
        return TokenRequest(
            prompt=session.tokens,
            adapter=role.adapter,
            sampling=request.sampling(role.sampling, greedy=greedy),
            seed=seed,
            end_ids=role.spoken_to.end_ids,
            lane=session.lane,
        )

    def _sampled(self, agent: str, session: TokenSession, answer: TokenAnswer) -> Sampled:
        chat, limit = self.roles[agent].spoken_to, self.roles[agent].sampling.max_tokens
        self.prefilled_tokens += session.length - answer.cached
        finish: Finish = "stop"
        if answer.tokens[-1] in chat.end_ids:
            finish = "end"
        elif len(answer.tokens) >= limit:
            finish = "length"
        action = Action(
            text=chat.decode(answer.tokens),
            tokens=answer.tokens,
            logprobs=answer.logprobs,
            finish=finish,
        )
        return Sampled(action, TokenSession(session.tokens + answer.tokens, session.lane))

    @torch.inference_mode()
    def _gap(self, role: Voice, probe: tuple[int, ...], answer: TokenAnswer) -> float:
        ids = torch.tensor([[*probe, *answer.tokens]], device=self.base.device)
        with self.base.using(role.adapter):
            logits = self.base.logits(self.base.hidden(ids)[0, len(probe) - 1 : -1])
        scores = (logits / (role.sampling.temperature or 1.0)).log_softmax(-1)
        live = scores.gather(-1, ids[0, len(probe) :, None]).squeeze(-1)
        gaps = (live.cpu() - torch.tensor(answer.logprobs)).abs()
        return float(gaps.nan_to_num(nan=torch.inf).max())
