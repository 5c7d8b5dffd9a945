"""Default engine: decodes on the trained model or on a copy of the model, in this process."""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any
from weakref import ref

import torch

from colearn.contract import TokenAnswer, TokenEngine, TokenRequest, WeightUpdate
from colearn.contract.batches import Tick
from colearn.contract.types import Action
from colearn.contract.weight_sync import LoadedWeights, Publish
from colearn.contract.worker import Ended, Worker, hand_over
from colearn.models.base import Base
from colearn.models.torch_settings import LARGE, parameter_count
from colearn.models.weight_update import plain_weights
from colearn.rollout.agents import AgentSpec

from .decoder import Decoder
from .job import Choice, Done, Event, Job


class TransformersEngine(LoadedWeights, TokenEngine):
    """Runs the requests of one turn as one batch: prefills the new tokens once, forks rows, and
    decodes all rows together. Ended rows are removed, and later requests can join the batch. The
    calling thread drives `generate`, a worker thread the requests of `submit`.

    Agents with different adapters, sampling and windows share the batch, but not KV caches.
    `max_rows` is the maximum number of rows decoded together (None: all rows of a turn). When a row
    ends, a waiting row takes its place. `cache_bytes` is the maximum size of the KV caches of
    histories between turns; None keeps each cache as long as its history exists. With `copies`, the
    engine decodes on a copy of the weights while the base is trained. The copy is on `device`
    (default: the base's device), and `sync` updates the copy. Engines on one base take turns. With
    `cuda_graphs`, a CUDA device replays recorded passes.
    """

    def __init__(
        self,
        base: Base,
        roles: Mapping[str, AgentSpec],
        *,
        max_rows: int | None = None,
        cache_bytes: int | None = None,
        copies: bool = False,
        device: torch.device | None = None,
        cuda_graphs: bool = True,
    ) -> None:
        super().__init__()
        self.copies = copies
        self.base = _copied(base, device) if copies else base
        self.roles = dict(roles)
        self.threads: tuple[int, int] | None = None
        """Number of torch's CPU threads that this engine uses, and the total number of threads.
        None: the engine takes turns with other engines."""
        self._decoder = decoder = Decoder(
            self.base, max_rows=max_rows, cache_bytes=cache_bytes, cuda_graphs=cuda_graphs
        )
        self._worker: Worker[Job, Event] = Worker(
            decoder,
            deliver=_deliver,
            failed=_fail,
            prepared=lambda: self._working(),
            place=lambda: self.place,
            joins=lambda waiting: waiting >= decoder.jobs,
        )
        self._tick: Tick[Job] = Tick(lambda jobs: self._worker.submit(*jobs))

    @property
    def prefilled_tokens(self) -> int:
        """Number of tokens run through the model to extend histories, over the engine's
        lifetime."""
        return self._decoder.prefilled_tokens

    @property
    def place(self) -> Hashable:
        """Key of the place where the engine runs. Engines with equal keys take turns. All engines
        on the CPU have the same key, because their threads would compete for the same cores. If the
        threads are divided among the engines, the keys differ."""
        device = self.base.device.type
        return device if device == "cpu" and self.threads is None else id(self.base)

    async def submit(self, request: TokenRequest) -> list[TokenAnswer]:
        """Answer a request. Waiting requests join the running batch once there are at least as many
        waiting requests as running requests. If requests joined one by one, each would be prefilled
        in a separate pass."""
        if not request.seeds:
            return []
        answer: asyncio.Future[list[TokenAnswer]] = asyncio.get_running_loop().create_future()
        job = self._job(request, answer)
        answer.add_done_callback(partial(_cancel, ref(job)))
        self._tick.add(job)
        return await answer

    def generate(self, requests: Sequence[TokenRequest]) -> list[list[TokenAnswer]]:
        """Answer all requests as one batch, in the calling thread. Jobs of the worker thread that
        are not finished decode in the same steps."""
        jobs = [self._job(request) for request in requests]
        decoder = self._decoder
        with self._prepared():
            for job in jobs:
                if job.rows:
                    decoder.submit(job)
            try:
                while any(job.left for job in jobs):
                    decoder.step()
                    _deliver(decoder.take_events())
            except BaseException as error:
                _fail(decoder.drop_all(), error)
                raise
        return [_answers(job) for job in jobs]

    def follow(self, sources: Sequence[Publish]) -> None:
        """Let the copy of the weights follow `sources`. Without a copy, the engine uses the
        learners' weights directly."""
        super().follow(sources if self.copies else ())

    def adapter(self, agent: str) -> str | None:
        return self.roles[agent].adapter

    def version(self, agent: str) -> int | None:
        return super().version(agent) if self.copies else None

    @torch.no_grad()
    def load(self, updates: Sequence[WeightUpdate]) -> None:
        weights = plain_weights(self.base) if updates else {}
        for update in updates:
            for name, tensor in (update.full or {}).items():
                weights[name].copy_(tensor)
            for adapter, tensors in update.adapters.items():
                from peft import set_peft_model_state_dict  # slow to import, and rarely needed

                set_peft_model_state_dict(self.base.model, dict(tensors), adapter_name=adapter)
        self.base.revision += bool(updates)
        self.loaded(updates)

    @contextmanager
    def _working(self) -> Iterator[None]:
        """Context of the worker thread while it runs the batch."""
        with self.busy("generate"), self._prepared():
            yield

    @contextmanager
    def _prepared(self) -> Iterator[None]:
        """Context in which the batch runs."""
        with self.base.in_use, _torch_threads(self.threads):
            try:
                yield
            finally:
                self.base.unpack()  # an update may follow

    def _job(
        self, request: TokenRequest, answer: asyncio.Future[list[TokenAnswer]] | None = None
    ) -> Job:
        if not len(request.history):
            raise ValueError(f"agent '{request.agent}' is asked to act on an empty history")
        role = self.roles[request.agent]
        return Job(
            request,
            role.chat_format,
            adapter=role.adapter,
            answer=answer,
        )


def _copied(base: Base, device: torch.device | None) -> Base:
    """Create a new base with the same weights, of the same types, and adapters, without training
    state."""
    with torch.random.fork_rng():
        copied = Base(type(base.causal)(copy.deepcopy(base.causal.config)), base.compute)
        for name in base.adapters:
            copied._inject(name, copy.deepcopy(base.model.peft_config[name]))
            copied.adapters.append(name)
        theirs = base.causal.parameters()
        for own, weight in zip(copied.causal.parameters(), theirs, strict=True):
            own.data = own.data.to(weight.dtype)
        with torch.no_grad():
            tensors = base.causal.state_dict()
            for name, tensor in copied.causal.state_dict().items():
                tensor.copy_(tensors[name])
    copied.model.eval()
    copied.to(base.device)
    copied.model.requires_grad_(False)
    return copied if device is None else copied.to(device)


def _cancel(reference: ref[Job], answer: asyncio.Future[Any]) -> None:
    """Cancels a job whose answer was cancelled, so that its rows are freed."""
    job = reference()
    if job is not None and answer.cancelled():
        job.cancelled = True


def _deliver(events: Sequence[tuple[Job, Event]]) -> None:
    """Pass events to their jobs' receivers, and answers to those who await them."""
    ended: list[Ended] = []
    for job, event in events:
        if job.cancelled:
            continue
        if job.answer is None:
            job.receive(event)
        elif isinstance(event, Done):
            ended.append((job.answer, _answers(job), None))
    if ended:
        hand_over(ended)


def _fail(jobs: Sequence[Job], error: BaseException | None) -> None:
    ended = error or RuntimeError("the engine's thread has ended")
    hand_over((job.answer, None, ended) for job in jobs if job.answer is not None)


def _answers(job: Job) -> list[TokenAnswer]:
    """The answers of a job that has ended."""
    seconds = time.perf_counter() - job.began
    return [TokenAnswer(_action(choice), choice.history, seconds) for choice in job.choices]


def _action(choice: Choice) -> Action:
    return Action(
        text=choice.text,
        tokens=tuple(choice.tokens),
        logprobs=tuple(choice.logprobs),
        finish=choice.finish,
    )


@contextmanager
def _torch_threads(threads: tuple[int, int] | None) -> Iterator[None]:
    """Context in which torch uses `threads[0]` threads. Afterwards, torch uses `threads[1]`
    threads, because new Python threads start with that number. None changes nothing."""
    if threads is None:
        yield
        return
    share, all_threads = threads
    torch.set_num_threads(share)
    try:
        yield
    finally:
        torch.set_num_threads(all_threads)


def share_cores(engines: Sequence[TransformersEngine]) -> None:
    """Let engines on the CPU decode concurrently, each with an equal share of torch's threads, if
    there are enough threads and all models are large. For small models, Python limits the speed."""
    if any(engine.base.device.type != "cpu" for engine in engines):
        return
    all_threads = torch.get_num_threads()
    share = all_threads // max(1, len(engines))
    sizes = [parameter_count(engine.base.causal) for engine in engines]
    if len(engines) > 1 and share and min(sizes) >= LARGE:
        for engine in engines:
            engine.threads = share, all_threads
