"""The generator: samples actions for many private histories in one call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from colearn.types import Action, Limits

from .weights import Publish


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How an agent draws its tokens.

    Log-probabilities are those of softmax(logits / temperature), before top-p and top-k cut the
    tail; temperature 0 is greedy and records log-probabilities at temperature 1.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int | None = None
    max_tokens: int = 256
    stop: tuple[str, ...] = ()
    """Strings that end an action; the text is kept up to and with the token that completes one."""


class Session(Protocol):
    """An opaque, immutable handle on one private history inside a generator.

    Continuing or forking a session leaves it usable: two requests may name the same one.
    """

    @property
    def length(self) -> int:
        """Tokens of the history so far, sampled ones included."""
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
    """Instead of the agent's own, as training may anneal it."""
    limits: Limits | None = None
    """Bounds on the action, in addition to the agent's own."""

    def sampling(self, own: Sampling, *, greedy: bool) -> Sampling:
        """How its tokens are drawn where the agent's settings are `own`."""
        if self.limits is not None:
            most = min(own.max_tokens, self.limits.max_tokens or own.max_tokens)
            stops = tuple(dict.fromkeys((*own.stop, *self.limits.stop)))
            own = replace(own, max_tokens=most, stop=stops)
        if greedy:
            return replace(own, temperature=0.0)
        return own if self.temperature is None else replace(own, temperature=self.temperature)


@dataclass(frozen=True, slots=True)
class Sampled:
    """An action and the history that now ends in it."""

    action: Action
    session: Session


class Generator(ABC):
    """Prefill, extend, fork and sample over private histories; one for each physical base model.

    A history's cache is private to its session and kept across turns. With a context window C a
    session forgets, at the start of a turn, all but its most recent C positions; new tokens that
    do not fit the window are an error. A generator in this process reads the learners' own
    weights; one elsewhere (vLLM, behind a server) is brought up to date by `sync`. Nothing in a
    request depends on where the model lives, so one device per agent is a matter of which
    generator serves which agent.
    """

    @property
    def place(self) -> Hashable:
        """Generators of one place share weights or switches and take turns."""
        return id(self)

    @abstractmethod
    def generate(self, requests: Sequence[Request], *, greedy: bool = False) -> list[list[Sampled]]:
        """One list of actions per request, one action per seed, in order."""

    @abstractmethod
    def sync(self) -> None:
        """Take over the learners' current weights; called after each update."""

    def follow(self, sources: Sequence[Publish]) -> None:  # noqa: B027 - it may read live weights
        """The models that it speaks with, each by what publishes its weights at a `sync`."""

    def version(self, agent: str) -> int | None:
        """Of the weights with which this agent's next request starts; None: the learner's own, as
        they are now."""
        return None

    def close(self) -> None:  # noqa: B027 - most generators hold nothing beyond Python's own memory
        """Free what the generator holds outside this process's garbage collector."""


class GeneratorKind(ABC):
    """Settings of a kind of generator, as a frozen dataclass: it builds the generators of a run.
    Loading it loads no torch."""

    @property
    def apart(self) -> bool:
        """Every agent has a generator of its own. Agents on one base share one otherwise."""
        return False

    @abstractmethod
    def build(self, base: Any, roles: Mapping[str, Any]) -> Generator:
        """A generator of `base` for agents by name: each one's adapter, chat format, sampling and
        window.

        Errors: ConfigError for a role that this kind cannot honour; MissingExtra.
        """
