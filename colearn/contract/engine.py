"""Token engine interface: maps histories of token ids to sampled ids and log-probabilities."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from colearn.contract.types import Action, AnswerLimits

from .batches import BatchQueue
from .history import TokenHistory
from .timeline import Timed
from .turns import turns_of
from .weight_sync import WeightSync


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """Sampling parameters of an agent.

    Recorded log-probabilities are computed from softmax(logits / temperature), before top-p and
    top-k truncation. Temperature 0 decodes greedily and records log-probabilities at temperature 1.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int | None = None
    max_tokens: int = 256
    stop: tuple[str, ...] = ()
    """Strings that end an action; the action's text includes the token that completes a stop
    string."""

    def within(self, limits: AnswerLimits | None, room: int | None) -> Sampling:
        """These parameters with the smallest of three token limits: `max_tokens`, the limit of an
        observation's `limits`, and `room`, the model's maximum length minus the length of the
        history (None: unlimited). The stop strings of `limits` are added."""
        max_tokens, stop = self.max_tokens, self.stop
        if room is not None:
            max_tokens = min(max_tokens, room)
        if limits is not None:
            max_tokens = min(max_tokens, limits.max_tokens or max_tokens)
            stop = tuple(dict.fromkeys((*stop, *limits.stop)))
        if (max_tokens, stop) == (self.max_tokens, self.stop):
            return self
        return replace(self, max_tokens=max_tokens, stop=stop)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequest:
    """A request for actions that follow a history, one action per seed.

    If there are several seeds, the history is prefilled once and then forked. The action drawn for
    a seed depends only on the seed, the history and the weights, not on the rest of the batch.
    """

    agent: str
    """Name of the agent in the engine; this name selects the adapter and the end tokens."""
    history: TokenHistory
    """o_0 a_0 ... o_t"""
    sampling: Sampling
    """Sampling parameters, with the `max_tokens` and `stop` of this action."""
    seeds: tuple[int, ...]
    continues: TokenHistory | None = None
    """The history of an earlier answer, which `history` extends. Engines use this object only to
    find the KV cache of the earlier answer; the object does not affect the sampled actions."""


@dataclass(frozen=True, slots=True)
class TokenAnswer:
    """An action, and the history that ends with this action. A program's answer has neither tokens
    nor history."""

    action: Action
    history: Any = None
    """A `TokenHistory`, or the messages of a player at an endpoint."""
    seconds: float = 0.0
    """Number of seconds between the time at which the request joined a batch and the time of its
    answer."""

    @property
    def context(self) -> Sequence[int]:
        """The token ids before the action; empty for a player without tokens."""
        if not isinstance(self.history, TokenHistory):
            return ()
        return self.history.ids[: len(self.history) - len(self.action.tokens)]


class TokenEngine(Timed, WeightSync):
    """Samples actions from one base model and its adapters; requests may share batches.

    A history consists of token ids and the visible range of each turn. An engine may keep the KV
    caches of the histories that it has returned, as long as these history objects exist and memory
    suffices. Requests do not depend on the model's location, so placement only determines which
    engine serves which agent.
    """

    @property
    def place(self) -> Hashable:
        """Key of the resources that the engine shares. Engines with equal places share weights or
        adapters, and run one at a time."""
        return id(self)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Context for calls of `generate` in a run: waits for other engines at the same place, and
        records the time as work of this engine."""
        with turns_of(self.place).turn(), self.busy("generate"):
            yield

    @abstractmethod
    def generate(self, requests: Sequence[TokenRequest]) -> list[list[TokenAnswer]]:
        """Returns one list of answers per request, with one answer per seed, in order. Runs in the
        calling thread until all answers are complete."""

    @abstractmethod
    async def submit(self, request: TokenRequest) -> list[TokenAnswer]:
        """Returns one answer per seed, in the order of the seeds. If the call is cancelled, its
        rows in the batch are freed."""

    def rest(self) -> None:
        """Called before models are updated, if no request can arrive during the update. The engine
        may free memory and allocate it again at the next request or weight transfer."""

    def close(self) -> None:
        """Free resources outside Python's garbage collector."""


class BatchEngine(TokenEngine):
    """An engine that answers a whole batch at once. Requests submitted in one iteration of the
    event loop form a batch; requests that arrive while a batch is being answered form the next
    batch."""

    async def submit(self, request: TokenRequest) -> list[TokenAnswer]:
        answers, seconds = await self._queue.submit(request)
        return [replace(answer, seconds=seconds) for answer in answers]

    @cached_property
    def _queue(self) -> BatchQueue[TokenRequest, list[TokenAnswer]]:
        return BatchQueue(self.generate, lambda: self.place, lambda: self.busy("generate"))


@dataclass(frozen=True, slots=True)
class EngineNeeds:
    """Estimated memory needs of an engine that holds a separate copy of the weights."""

    held: int
    """Number of bytes that the engine holds on the model's device in every phase; 0 if the engine
    runs on another device."""
    cache: int
    """Number of bytes of the engine's KV cache on the model's device."""


class GeneratorKind(ABC):
    """Settings of a kind of engine, as a frozen dataclass that builds a run's engines. Importing
    the dataclass does not import torch."""

    @property
    def apart(self) -> bool:
        """Whether every agent has its own engine; otherwise agents on one base share an engine."""
        return False

    @property
    def copies(self) -> bool:
        """Whether engines of this kind have a separate copy of the weights, which `train.staleness`
        requires."""
        return False

    def check(self, run: Any) -> None:  # noqa: B027 - most kinds take every run
        """Check a resolved run before models are loaded.

        Errors: ConfigError for a resolved run that this kind does not support.
        """

    def needs(self, weights: int, *, memory: int | None) -> EngineNeeds | None:
        """Memory needs of an engine, for a model whose weights take `weights` bytes in the compute
        type, on a device with `memory` bytes (None: the CPU). Returns None if the engine decodes
        with the trained model itself."""
        return None

    def places(self, run: Any) -> list[str]:
        """Lines in the output of a dry run that state where the agents' answers are generated;
        empty if the models that the run trains generate the answers."""
        return []

    @abstractmethod
    def build(self, base: Any, roles: Mapping[str, Any]) -> TokenEngine:
        """Build an engine of `base`. `roles` maps each agent's name to its adapter, chat format,
        sampling and window.

        Errors: ConfigError for a role that this kind does not support; MissingExtra.
        """
