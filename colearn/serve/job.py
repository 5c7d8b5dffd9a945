"""What the engine is asked to do, and what it tells while it does it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from colearn.contract import Sampling
from colearn.types import Finish

from .history import History


@dataclass(frozen=True, slots=True)
class Place:
    """Where a session's pairs are kept between turns."""

    key: int
    held: int | None
    """Mark of the pairs that belong to the session's history; others are of a turn that was
    given up."""
    mark: int
    """Of the pairs as this job leaves them."""


@dataclass(frozen=True, slots=True)
class Token:
    """One sampled token, as a stream gives it."""

    choice: int
    id: int
    logprob: float
    top: tuple[tuple[int, float], ...]
    """The likeliest ids and their log-probabilities, where asked for."""
    text: str
    """What the answer's text grew by; may be empty."""


@dataclass(slots=True)
class Choice:
    """One action of a job."""

    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    top: list[tuple[tuple[int, float], ...]] = field(default_factory=list)
    text: str = ""
    finish: Finish = "length"


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


Event = Token | ChoiceEnd | Done | Failed


@dataclass(slots=True, kw_only=True, eq=False)
class Job:
    """Continue one history by an action for each seed.

    `receive` is called in the event loop, in order; after Done or Failed never again.
    """

    history: History
    sampling: Sampling
    """`stop` holds the agent's own strings: they stay in the text."""
    seeds: tuple[int, ...]
    receive: Callable[[Event], None]
    cut_stops: tuple[str, ...] = ()
    """The request's strings: the text ends before them."""
    top_logprobs: int = 0
    streams: bool = False
    """Tell every token; otherwise only the end is told."""
    place: Place | None = None
    """None: nothing is kept of this job."""
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
