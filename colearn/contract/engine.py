"""Token engine interface: histories as ids in, sampled ids and log-probabilities out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from colearn.types import Action

from .batches import BatchQueue
from .history import TokenHistory
from .timeline import Timed
from .weight_sync import WeightSync

Listener = Callable[[str], None]
"""Receives the text of an action in parts, in any thread, while it is sampled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """Sampling parameters of an agent.

    Log-probabilities are those of softmax(logits / temperature), before top-p and top-k truncation.
    Temperature 0 is greedy and records log-probabilities at temperature 1.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int | None = None
    max_tokens: int = 256
    stop: tuple[str, ...] = ()
    """Strings that end an action; the text includes the token that completes one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequest:
    """Draw one action for each seed after a history.

    Several seeds fork the history after one prefill. The draw of a seed depends on the seed, the
    history and the weights alone, not on the rest of the batch.
    """

    agent: str
    """Name of the agent in the engine, which gives its adapter and its end tokens."""
    history: TokenHistory
    """o_0 a_0 ... o_t"""
    sampling: Sampling
    """Its `max_tokens` and `stop` are those of this action."""
    seeds: tuple[int, ...]
    continues: TokenHistory | None = None
    """The history of an earlier answer, with which this one begins: engines find their KV cache of
    it by this object. It changes no value."""
    listener: Listener | None = None
    """Receives the text of a single action while it is sampled, if the engine can."""


@dataclass(frozen=True, slots=True)
class TokenAnswer:
    """An action, and the history that ends with it. A program's has neither tokens nor history."""

    action: Action
    history: Any = None
    """A `TokenHistory`, or the messages of a player at an endpoint."""
    seconds: float = 0.0
    """Seconds from the time at which the request joined a batch to its answer."""


class TokenEngine(Timed, WeightSync):
    """Samples actions from one base model and its adapters; requests may share batches.

    A history is its ids and the visible range of each turn. An engine may keep KV caches of the
    histories that it has answered with, for as long as these exist or its memory allows. Requests
    do not depend on where the model is, so placement only decides which engine serves which agent.
    """

    @property
    def place(self) -> Hashable:
        """Engines with equal places share weights or adapters and run one at a time."""
        return id(self)

    @abstractmethod
    async def submit(self, request: TokenRequest) -> list[TokenAnswer]:
        """One answer per seed, in order. A cancelled call frees its place in the batch."""

    def rest(self) -> None:
        """Called before models update, if nothing is asked until then: an engine may free memory
        until its next request or update of weights."""

    def close(self) -> None:
        """Free resources outside Python's garbage collector."""


class BatchEngine(TokenEngine):
    """An engine that answers a whole batch at once. Requests of one turn of the event loop form a
    batch; those that arrive while it is answered form the next."""

    @abstractmethod
    def generate(self, requests: Sequence[TokenRequest]) -> list[list[TokenAnswer]]:
        """One list of answers per request, one answer per seed, in order; the caller waits."""

    async def submit(self, request: TokenRequest) -> list[TokenAnswer]:
        answers, seconds = await self._queue.submit(request)
        return [replace(answer, seconds=seconds) for answer in answers]

    @cached_property
    def _queue(self) -> BatchQueue[TokenRequest, list[TokenAnswer]]:
        return BatchQueue(self.generate, lambda: self.place, lambda: self.busy("generate"))


@dataclass(frozen=True, slots=True)
class EngineNeeds:
    """What an engine with weights of its own needs, for estimates."""

    held: int
    """Bytes on its model's device in every phase; 0 for an engine elsewhere."""
    cache: int | None
    """Bytes of its key/value cache; None: unknown, taken as large enough."""
    rows: int
    """Rows decoded together."""
    apart: bool
    """Whether it is a process of its own, which weights reach through files. Engines of one process
    answer one after another."""


class GeneratorKind(ABC):
    """Settings of a kind of engine, as a frozen dataclass that builds a run's engines.
    Importing it does not import torch."""

    @property
    def apart(self) -> bool:
        """Whether every agent has its own engine; otherwise agents on one base share one."""
        return False

    @property
    def copies(self) -> bool:
        """Whether its engines have their own copy of the weights, as `train.staleness` needs."""
        return False

    def check(self, run: Any) -> None:  # noqa: B027 - most kinds take every run
        """Called before anything is loaded.

        Errors: ConfigError for a resolved run that this kind does not support.
        """

    def needs(self, weights: int, *, memory: int | None) -> EngineNeeds | None:
        """Needs of the engine for a model of `weights` bytes in its compute type on a device of
        `memory` bytes, None for a CPU; None if it decodes with the model itself."""
        return None

    def places(self, run: Any) -> list[str]:
        """Lines of a dry run: where the agents of a resolved run generate, if not in its models."""
        return []

    @abstractmethod
    def build(self, base: Any, roles: Mapping[str, Any]) -> TokenEngine:
        """An engine of `base` for `roles`: by agent name, its adapter, chat format, sampling and
        window.

        Errors: ConfigError for a role that this kind does not support; MissingExtra.
        """
