"""Decode jobs and the events that the engine reports for them."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from colearn.agents import ChatFormat
from colearn.contract import Sampling
from colearn.types import Finish

from .kv_cache import CachedRow
from .token_history import TokenHistory

Top = tuple[tuple[int, float], ...]
"""The most likely ids and their log-probabilities, most likely first."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Key of a served session's KV cache between turns, within the memory limit."""

    key: int
    held: int | None
    """Mark of the cache that matches the session's history; another mark belongs to an abandoned
    turn."""
    mark: int
    """Mark of the cache after this job."""


@dataclass(frozen=True, slots=True)
class TokenDrawn:
    """One sampled token of a stream."""

    choice: int
    id: int
    logprob: float
    top: Top
    text: str
    """Text that became final with this token; may be empty."""


@dataclass(slots=True)
class Choice:
    """One action of a job."""

    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    top: list[Top] = field(default_factory=list)
    """The most likely tokens at each step, if the job requests them."""
    text: str = ""
    finish: Finish = "length"
    cached: CachedRow | None = None
    """KV cache of the history and this action without its last token, if the job holds it."""


@dataclass(frozen=True, slots=True)
class ChoiceEnd:
    """End of a stream's choice; `text` is the part that was held back."""

    choice: int
    text: str
    finish: Finish


@dataclass(frozen=True, slots=True)
class Done:
    """Every choice of the job is complete."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The engine failed on this job."""

    message: str


Event = TokenDrawn | ChoiceEnd | Done | Failed


@dataclass(slots=True, kw_only=True, eq=False, weakref_slot=True)
class Job:
    """Continues one history by one action per seed.

    A draw depends on its seed and the history alone, not on other jobs in the batch.
    """

    history: TokenHistory
    chat: ChatFormat
    """Defines the ids that end an action and how ids are decoded."""
    sampling: Sampling
    """Its `stop` strings are the agent's: they stay in the text."""
    seeds: tuple[int, ...]
    adapter: str | None = None
    cached: CachedRow | None = None
    """KV cache of the history, for a caller that holds it."""
    holds: bool = False
    """Leave each choice's KV cache in place for the caller; nothing overwrites it."""
    slot: Slot | None = None
    """Key under which the engine stores the KV cache between turns, until it is evicted."""
    cut_stops: tuple[str, ...] = ()
    """Stop strings of the request: the text ends before them."""
    top_logprobs: int = 0
    streams: bool = False
    """Report every token; otherwise only the end is reported."""
    receive: Callable[[Event], None] = lambda event: None
    """Receives the events; none follow Done or Failed."""
    cancelled: bool = False
    """The caller no longer waits; the rows are freed at the next step."""
    answer: Future[Any] = field(default_factory=Future)
    """What awaits the end of the job, if it is not told of it by `receive`."""
    left: int = field(init=False)
    """Number of choices that have not ended."""
    choices: list[Choice] = field(default_factory=list)
    """Filled by the engine; complete after Done."""
    prefilled: int = 0
    """Tokens run through the model to extend the history."""
    arrived: float = field(default_factory=time.perf_counter)
    began: float = 0.0
    """When it was admitted."""
    first_token: float | None = None
    """Seconds from arrival to the first token."""

    def __post_init__(self) -> None:
        self.left = len(self.seeds)

    @property
    def rows(self) -> int:
        return len(self.seeds)

    @property
    def longest(self) -> int:
        """Tokens of the history after an action of maximum length."""
        return len(self.history) + self.sampling.max_tokens
