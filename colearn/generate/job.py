"""Decode jobs and the events that the engine reports for them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from colearn.agents import ChatFormat
from colearn.contract import TokenHistory, TokenRequest
from colearn.contract.results import Answer
from colearn.types import Finish

Top = tuple[tuple[int, float], ...]
"""The most likely ids and their log-probabilities, most likely first."""


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
    history: TokenHistory | None = None
    """The history that ends with this action; None until it has ended."""


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


class Job:
    """A request while the engine works on it."""

    def __init__(
        self,
        request: TokenRequest,
        chat: ChatFormat,
        *,
        adapter: str | None = None,
        keeps: bool = True,
        cut_stops: tuple[str, ...] = (),
        top_logprobs: int = 0,
        streams: bool = False,
        receive: Callable[[Event], None] = lambda event: None,
        arrived: float | None = None,
        answer: Answer | None = None,
    ) -> None:
        """`chat` defines the ids that end an action and how ids are decoded. `receive` is called
        with the events, of which none follow Done or Failed; with `streams` every token is one."""
        self.request, self.chat, self.adapter = request, chat, adapter
        self.keeps = keeps
        """Whether the histories of its answers may be continued: their KV caches are kept."""
        self.cut_stops, self.top_logprobs = cut_stops, top_logprobs
        """`cut_stops`: further strings that end an action; the text ends before them."""
        self.streams, self.receive = streams, receive
        self.cancelled = False
        """The caller no longer waits; the rows are freed at the next step."""
        self.answer = answer
        """The end of the job, for a caller without `receive`."""
        self.choices = [Choice() for _ in request.seeds]
        """Filled by the engine; complete after Done."""
        self.left = self.rows
        """Number of choices that have not ended."""
        self.prefilled = 0
        """Tokens run through the model to extend the history."""
        self.arrived = time.perf_counter() if arrived is None else arrived
        self.began = 0.0
        """When it was admitted."""
        self.first_token: float | None = None
        """Seconds from arrival to the first token."""

    @property
    def rows(self) -> int:
        return len(self.request.seeds)

    @property
    def longest(self) -> int:
        """Tokens of the history after an action of maximum length."""
        return len(self.request.history) + self.request.sampling.max_tokens
