"""Generator interface: samples actions for many private histories in one call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Protocol

from colearn.types import Action, Limits

from .batches import BatchQueue
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


class Session(Protocol):
    """An opaque, immutable handle of one private history inside a generator.

    Continuing or forking a session leaves it usable: two requests may name the same one.
    """

    @property
    def length(self) -> int:
        """Number of tokens of the history so far, sampled ones included."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Extend one history by `tokens`, then draw one action for each seed.

    `session` None opens an empty history. Several seeds fork the history after one prefill.
    The draw of a seed depends on the seed and the history alone, not on the rest of the batch.
    """

    agent: str
    session: Session | None
    tokens: tuple[int, ...]
    seeds: tuple[int, ...]
    temperature: float | None = None
    """Replaces the agent's temperature, which training may anneal."""
    limits: Limits | None = None
    """Bounds on the action, in addition to the agent's own."""
    listener: Listener | None = None
    """Receives the text of a single action while it is sampled, if the generator can."""

    def sampling(self, own: Sampling, *, greedy: bool) -> Sampling:
        """The request's sampling parameters, given the agent's own."""
        if self.limits is not None:
            most = min(own.max_tokens, self.limits.max_tokens or own.max_tokens)
            stops = tuple(dict.fromkeys((*own.stop, *self.limits.stop)))
            own = replace(own, max_tokens=most, stop=stops)
        if greedy:
            return replace(own, temperature=0.0)
        return own if self.temperature is None else replace(own, temperature=self.temperature)


@dataclass(frozen=True, slots=True)
class Sampled:
    """An action, and the session of the history that ends with it."""

    action: Action
    session: Session
    seconds: float = 0.0
    """From the batch that the request joined to its answer."""


class Generator(Timed, WeightSync):
    """Prefills, extends, forks and samples private histories; one generator per base model.

    A history's KV cache is private to its session and kept across turns. With a context window C, a
    session drops all but its most recent C positions at the start of a turn; new tokens that exceed
    the window are an error. Requests do not depend on where the model lives, so placement only
    decides which generator serves which agent.
    """

    @property
    def place(self) -> Hashable:
        """Generators with equal places share weights or adapters and run one at a time."""
        return id(self)

    @abstractmethod
    def generate(self, requests: Sequence[Request], *, greedy: bool = False) -> list[list[Sampled]]:
        """One list of actions per request, one action per seed, in order; the caller waits."""

    async def submit(self, request: Request, *, greedy: bool = False) -> list[Sampled]:
        """One action per seed, in order. Requests of one turn of the event loop are one batch, of
        `generate` unless the generator can let requests join a running batch."""
        drawn, seconds = await self._queues[greedy].submit(request)
        return [replace(sampled, seconds=seconds) for sampled in drawn]

    @cached_property
    def _queues(self) -> dict[bool, BatchQueue[Request, list[Sampled]]]:
        def queue(greedy: bool) -> BatchQueue[Request, list[Sampled]]:
            answer = partial(self.generate, greedy=greedy)
            return BatchQueue(answer, lambda: self.place, lambda: self.busy("generate"))

        return {greedy: queue(greedy) for greedy in (False, True)}

    def close(self) -> None:
        """Free resources outside Python's garbage collector."""


class GeneratorKind(ABC):
    """Settings of a kind of generator, as a frozen dataclass that builds a run's generators.
    Importing it does not import torch."""

    @property
    def apart(self) -> bool:
        """Whether every agent has its own generator; otherwise agents on one base share one."""
        return False

    @property
    def copies(self) -> bool:
        """Whether its generators have their own copy of the weights, as `train.staleness` needs."""
        return False

    def check(self, run: Any) -> None:  # noqa: B027 - most kinds take every run
        """Called before anything is loaded.

        Errors: ConfigError for a resolved run that this kind does not support.
        """

    def places(self, run: Any) -> list[str]:
        """Lines of a dry run: where the agents of a resolved run generate, if not in its models."""
        return []

    @abstractmethod
    def build(self, base: Any, roles: Mapping[str, Any]) -> Generator:
        """A generator of `base` for `roles`: by agent name, its adapter, chat format, sampling and
        window.

        Errors: ConfigError for a role that this kind does not support; MissingExtra.
        """
