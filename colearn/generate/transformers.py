"""The default generator: a call's requests, decoded together on one base model."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from colearn.agents import Voice
from colearn.contract import Generator, Request, Sampled
from colearn.errors import ConfigError
from colearn.models.base import Base
from colearn.types import Action

from .engine import Engine
from .job import Choice, Job
from .kv_cache import CachedRow
from .token_history import TokenHistory, WindowExceeded


@dataclass(frozen=True, slots=True)
class CachedSession:
    """A history that ends in an action, and its KV cache, in which the last token is not yet."""

    history: TokenHistory
    cached: CachedRow

    @property
    def length(self) -> int:
        return len(self.history)


class TransformersGenerator(Generator):
    """All requests of a call run as one batch: one prefill of the new tokens, forks by copying
    rows, one decode in which rows that have ended are dropped.

    Agents with different adapters, sampling and windows share the batch; their caches do not.
    `max_rows` bounds the rows decoded together (memory): others join as rows end; None decodes all
    of a call at once. Generators on one base take turns; on different ones they may be called from
    different threads at the same time.
    """

    def __init__(
        self, base: Base, voices: Mapping[str, Voice], *, max_rows: int | None = None
    ) -> None:
        self.base = base
        self.voices = dict(voices)
        self._engine = Engine(base, max_rows=max_rows)

    @property
    def prefilled_tokens(self) -> int:
        """Tokens run through the model to extend histories, over the generator's life."""
        return self._engine.prefilled_tokens

    @property
    def place(self) -> Hashable:
        """On the CPU all bases are one place: a second thread would take their cores from them."""
        device = self.base.device.type
        return device if device == "cpu" else id(self.base)

    def sync(self) -> None:
        """The learner's weights are these weights."""

    def generate(self, requests: Sequence[Request], *, greedy: bool = False) -> list[list[Sampled]]:
        """Errors: ConfigError where new tokens do not fit an agent's context window."""
        jobs = [self._job(request, greedy) for request in requests]
        engine = self._engine
        with self.base.in_use:
            for job in jobs:
                engine.submit(job)
            try:
                while engine.busy:
                    engine.step()
            finally:
                engine.drop_all()
                engine.told()
        return [[_sampled(job, choice) for choice in job.choices] for job in jobs]

    def _job(self, request: Request, greedy: bool) -> Job:
        voice, session = self.voices[request.agent], request.session
        assert session is None or isinstance(session, CachedSession)
        if session is None and not request.tokens:
            raise ValueError(f"agent '{request.agent}' is asked to act on an empty history")
        history = TokenHistory() if session is None else session.history
        try:
            history = history.observe(request.tokens, voice.window)
        except WindowExceeded:
            raise ConfigError(
                f"agents.{request.agent}.window: an observation of {len(request.tokens)} "
                f"tokens exceeds the window of {voice.window}; raise it"
            ) from None
        return Job(
            history=history,
            chat=voice.spoken_to,
            sampling=request.sampling(voice.sampling, greedy=greedy),
            seeds=request.seeds,
            adapter=voice.adapter,
            cached=None if session is None else session.cached,
            holds=True,
        )


def _sampled(job: Job, choice: Choice) -> Sampled:
    assert choice.cached is not None
    action = Action(
        text=choice.text,
        tokens=tuple(choice.tokens),
        logprobs=tuple(choice.logprobs),
        finish=choice.finish,
    )
    return Sampled(action, CachedSession(job.history.act(choice.tokens), choice.cached))
