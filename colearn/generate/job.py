"""Decode jobs, and the events that the engine reports for these jobs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from colearn.agents import ChatFormat
from colearn.contract import TokenHistory, TokenRequest
from colearn.contract.results import Answer
from colearn.types import Finish

Top = tuple[tuple[int, float], ...]
"""The most likely token ids with their log-probabilities, the most likely first."""


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
    """The most likely tokens at each step, if the job requests their log-probabilities."""
    text: str = ""
    finish: Finish = "length"
    history: TokenHistory | None = None
    """The history that ends with this action; None until the action has ended."""


@dataclass(frozen=True, slots=True)
class ChoiceEnd:
    """End of a choice in a stream. `text` is the final part of the text, which earlier events did
    not include."""

    choice: int
    text: str
    finish: Finish


@dataclass(frozen=True, slots=True)
class Done:
    """Reports that every choice of the job is complete."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Reports that the engine failed on this job."""

    message: str


Event = TokenDrawn | ChoiceEnd | Done | Failed


class Job:
    """A request, with its state while the engine works on it."""

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
        """`chat` defines the ids that end an action and the decoding of ids to text. `receive` is
        called with each event; Done or Failed is the last event. With `streams`, each sampled token
        is reported as an event.
        """
        self.request, self.chat, self.adapter = request, chat, adapter
        self.keeps = keeps
        """Whether the histories of the answers may be continued; if so, their KV caches are
        kept."""
        self.cut_stops, self.top_logprobs = cut_stops, top_logprobs
        """`cut_stops`: additional stop strings that end an action and are cut from its text.
        `top_logprobs`: number of most likely tokens to report at each step."""
        self.streams, self.receive = streams, receive
        self.cancelled = False
        """Whether the caller has stopped waiting; the rows are freed at the next step."""
        self.answer = answer
        """Future of the job's answers, for a caller without `receive`."""
        self.choices = [Choice() for _ in request.seeds]
        """The job's actions, filled by the engine; complete after Done."""
        self.left = self.rows
        """Number of choices that have not ended."""
        self.prefilled = 0
        """Number of tokens run through the model to extend the history."""
        self.arrived = time.perf_counter() if arrived is None else arrived
        self.began = 0.0
        """Time at which the job was admitted, in seconds."""
        self.first_token: float | None = None
        """Seconds from arrival to the first token."""

    @property
    def rows(self) -> int:
        return len(self.request.seeds)

    @property
    def longest(self) -> int:
        """Number of tokens of the history after an action of maximum length."""
        return len(self.request.history) + self.request.sampling.max_tokens
