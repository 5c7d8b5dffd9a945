"""What the engine is asked to do, and what it tells while it does it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from colearn.agents import ChatFormat
from colearn.contract import Sampling
from colearn.types import Finish

from .kv_cache import CachedRow
from .token_history import TokenHistory

Top = tuple[tuple[int, float], ...]
"""The likeliest ids and their log-probabilities, likeliest first."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Where the KV cache of a served session is kept between turns, within the memory limit."""

    key: int
    held: int | None
    """Mark of the cache that belongs to the session's history; another one is of a turn that was
    given up."""
    mark: int
    """Of the cache as this job leaves it."""


@dataclass(frozen=True, slots=True)
class TokenDrawn:
    """One sampled token, as a stream gives it."""

    choice: int
    id: int
    logprob: float
    top: Top
    text: str
    """What the answer's text grew by; may be empty."""


@dataclass(slots=True)
class Choice:
    """One action of a job."""

    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    top: list[Top] = field(default_factory=list)
    """For each token, where the job asks for them."""
    text: str = ""
    finish: Finish = "length"
    cached: CachedRow | None = None
    """The KV cache of the history with this action, all but its last token; where held."""


@dataclass(frozen=True, slots=True)
class ChoiceEnd:
    """A stream's choice is complete: `text` is what had been held back of it."""

    choice: int
    text: str
    finish: Finish


@dataclass(frozen=True, slots=True)
class Done:
    """Every choice of the job is complete."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The engine could not do the job."""

    message: str


Event = TokenDrawn | ChoiceEnd | Done | Failed


@dataclass(slots=True, kw_only=True, eq=False)
class Job:
    """Continue one history by an action for each seed.

    The draw of a seed depends on the seed and the history alone, whoever else is decoded beside.
    """

    history: TokenHistory
    chat: ChatFormat
    """Which ids end an action, and how ids are read."""
    sampling: Sampling
    """`stop` holds the agent's own strings: they stay in the text."""
    seeds: tuple[int, ...]
    adapter: str | None = None
    cached: CachedRow | None = None
    """What is known of the history, for a caller that holds it."""
    holds: bool = False
    """Leave the KV cache of every choice where it is, for the caller; nothing overwrites it."""
    slot: Slot | None = None
    """Where the engine itself keeps the KV cache between turns, until it must make room."""
    cut_stops: tuple[str, ...] = ()
    """The request's strings: the text ends before them."""
    top_logprobs: int = 0
    streams: bool = False
    """Tell every token; otherwise only the end is told."""
    receive: Callable[[Event], None] = lambda event: None
    """For whoever delivers the events; after Done or Failed there are no more."""
    cancelled: bool = False
    """Nobody waits any more; the rows are freed at the next step."""
    left: int = field(init=False)
    """Choices that have not ended."""
    choices: list[Choice] = field(default_factory=list)
    """Filled by the engine; to be read after Done."""
    prefilled: int = 0
    """Tokens that were run through the model to extend the history."""
    arrived: float = field(default_factory=time.perf_counter)
    first_token: float | None = None
    """Seconds from the arrival to the first token."""

    def __post_init__(self) -> None:
        self.left = len(self.seeds)

    @property
    def rows(self) -> int:
        return len(self.seeds)

    @property
    def longest(self) -> int:
        """Tokens of the history when every choice has run to its limit."""
        return len(self.history) + self.sampling.max_tokens
