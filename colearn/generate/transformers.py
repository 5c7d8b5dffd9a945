"""Default generator: decodes the requests of a call together on one base model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import ref

import torch

from colearn.agents import Voice
from colearn.contract import Generator, Listener, Request, Sampled
from colearn.contract.batches import Tick
from colearn.contract.worker import Worker
from colearn.errors import ConfigError
from colearn.models.base import Base
from colearn.models.threads import LARGE, parameter_count
from colearn.types import Action

from .engine import Engine
from .job import Choice, ChoiceEnd, Done, Event, Job, TokenDrawn
from .kv_cache import CachedRow
from .token_history import TokenHistory, WindowExceeded


@dataclass(frozen=True, slots=True)
class CachedSession:
    """A history that ends in an action, and its KV cache without the last token."""

    history: TokenHistory
    cached: CachedRow

    @property
    def length(self) -> int:
        return len(self.history)


class TransformersGenerator(Generator):
    """Runs the requests of a call, or of one turn of the event loop, as one batch: one prefill of
    the new tokens, forks by copying rows, and one decode from which ended rows are removed and
    which later requests can join. A worker thread drives the engine.

    Agents with different adapters, sampling and windows share the batch, not their caches.
    `max_rows` bounds the rows decoded together; others join as rows end. None decodes all rows of
    a call at once. Generators on one base take turns; on different bases they may be called from
    different threads at the same time.
    """

    def __init__(
        self, base: Base, voices: Mapping[str, Voice], *, max_rows: int | None = None
    ) -> None:
        self.base = base
        self.voices = dict(voices)
        self.threads: tuple[int, int] | None = None
        """A call's share of torch's threads on the CPU, and all of them; None: calls take turns
        with those of other generators."""
        self._engine = engine = Engine(base, max_rows=max_rows)
        self._worker: Worker[Job, Event] = Worker(
            engine,
            deliver=_deliver,
            failed=_fail,
            prepared=lambda: self._prepared(),
            place=lambda: self.place,
            joins=lambda waiting: waiting >= engine.jobs,
        )
        self._tick: Tick[Job] = Tick(lambda jobs: self._worker.submit(*jobs))

    @property
    def prefilled_tokens(self) -> int:
        """Tokens run through the model to extend histories, over the generator's life."""
        return self._engine.prefilled_tokens

    @property
    def place(self) -> Hashable:
        """One place for all bases on the CPU, where threads would compete for the same cores,
        unless each has its own share of them."""
        device = self.base.device.type
        return device if device == "cpu" and self.threads is None else id(self.base)

    def sync(self) -> None:
        """Does nothing: the generator reads the learners' own weights."""

    async def submit(self, request: Request, *, greedy: bool = False) -> list[Sampled]:
        """Requests join the running batch once as many wait as run. Joining one by one would
        prefill each of them in a pass of its own.

        Errors: ConfigError if new tokens do not fit an agent's context window.
        """
        if not request.seeds:
            return []
        job = self._job(request, greedy)
        self._tick.add(job)
        return await asyncio.wrap_future(job.answer)

    def generate(self, requests: Sequence[Request], *, greedy: bool = False) -> list[list[Sampled]]:
        """Errors: as for `submit`."""
        jobs = [self._job(request, greedy) for request in requests]
        self._worker.submit(*(job for job in jobs if job.seeds))
        try:
            return [job.answer.result() if job.seeds else [] for job in jobs]
        except BaseException:
            for job in jobs:
                job.answer.cancel()
            raise

    @contextmanager
    def _prepared(self) -> Iterator[None]:
        """Surrounds the time in which the engine is busy."""
        with self.base.in_use, _torch_threads(self.threads), self.busy("generate"):
            try:
                yield
            finally:
                self.base.unpack()  # an update may follow

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
        job = Job(
            history=history,
            chat=voice.spoken_to,
            sampling=request.sampling(voice.sampling, greedy=greedy),
            seeds=request.seeds,
            adapter=voice.adapter,
            cached=None if session is None else session.cached,
            holds=True,
            streams=request.listener is not None,
            receive=_text_to(request.listener),
        )
        job.answer.add_done_callback(partial(_cancel, ref(job)))
        return job


def _cancel(job: ref[Job], answer: Future[Any]) -> None:
    """Frees the rows of a job whose answer nobody awaits."""
    one = job()
    if one is not None and answer.cancelled():
        one.cancelled = True


def _deliver(told: Sequence[tuple[Job, Event]]) -> None:
    for job, event in told:
        job.receive(event)
        if isinstance(event, Done) and job.answer.set_running_or_notify_cancel():
            job.answer.set_result([_sampled(job, choice) for choice in job.choices])


def _fail(jobs: Sequence[Job], error: BaseException | None) -> None:
    for job in jobs:
        if job.answer.set_running_or_notify_cancel():
            job.answer.set_exception(error or RuntimeError("the engine's thread has ended"))


def _text_to(listener: Listener | None) -> Callable[[Event], None]:
    """Returns a receiver of events that forwards the text of an action."""

    def receive(event: Event) -> None:
        if listener is not None and isinstance(event, TokenDrawn | ChoiceEnd) and event.text:
            listener(event.text)

    return receive


@contextmanager
def _torch_threads(threads: tuple[int, int] | None) -> Iterator[None]:
    """Torch's threads in this Python thread, and what new Python threads begin with afterwards;
    None leaves both."""
    if threads is None:
        yield
        return
    share, every = threads
    torch.set_num_threads(share)
    try:
        yield
    finally:
        torch.set_num_threads(every)


def share_cores(generators: Sequence[TransformersGenerator]) -> None:
    """Let generators on the CPU decode at the same time, each with an equal share of torch's
    threads, where there are enough and the models are large: small ones wait for Python."""
    if any(generator.base.device.type != "cpu" for generator in generators):
        return
    every = torch.get_num_threads()
    share = every // max(1, len(generators))
    sizes = [parameter_count(one.base.causal) for one in generators]
    if len(generators) > 1 and share and min(sizes) >= LARGE:
        for generator in generators:
            generator.threads = share, every


def _sampled(job: Job, choice: Choice) -> Sampled:
    assert choice.cached is not None
    action = Action(
        text=choice.text,
        tokens=tuple(choice.tokens),
        logprobs=tuple(choice.logprobs),
        finish=choice.finish,
    )
    session = CachedSession(job.history.act(choice.tokens), choice.cached)
    return Sampled(action, session, time.perf_counter() - job.began)
