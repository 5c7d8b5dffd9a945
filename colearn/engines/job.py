"""Decode jobs: their choices, the state of a choice during decoding, and the events that the engine
reports."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from colearn.contract import TokenHistory, TokenRequest
from colearn.contract.types import Finish
from colearn.rollout.agents import ChatFormat

from .growing_text import GrowingText
from .sampling import TokenDrawing

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
    stop: str | None = None
    """The stop string that ended the action, if any."""
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
        answer: asyncio.Future[Any] | None = None,
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


class DecodingRow:
    """Decoding state of choice `number` of a job."""

    def __init__(self, job: Job, number: int) -> None:
        self.job, self.number = job, number
        self.uniform = np.random.default_rng(job.request.seeds[number]).random
        """Returns the next uniform random number of the seed's sequence."""
        self.choice: Choice = job.choices[number]
        self.ended = False
        self.text: GrowingText | None = None
        self._ends = job.chat.end_ids
        sampling = job.request.sampling
        self._limit = sampling.max_tokens
        if job.streams or sampling.stop or job.cut_stops:
            self.text = GrowingText(job.chat, sampling.stop, job.cut_stops)

    def push(self, token: int, logprob: float) -> str:
        """Append a sampled token and check whether the action has ended. Returns the text that
        became final."""
        choice = self.choice
        choice.tokens.append(token)
        choice.logprobs.append(logprob)
        if self.text is None and token not in self._ends and len(choice.tokens) < self._limit:
            return ""  # the common case
        grown = "" if self.text is None else self.text.push(token)
        finish = self._finish(token)
        if finish is not None:
            self.ended, choice.finish = True, finish
            if finish == "stop" and self.text is not None:
                choice.stop = self.text.stop
        return grown

    def finish(self) -> str:
        """Set the completed action's text and history; returns the part of the text that a stream
        has not received yet."""
        choice, text = self.choice, self.text
        tail = "" if text is None else text.finish()
        if text is not None and (self.job.streams or text.cut_at is not None):
            choice.text = text.text
        else:
            choice.text = self.job.chat.decode(tuple(choice.tokens))
        choice.history = self.job.request.history.act(choice.tokens)
        return tail

    def _finish(self, token: int) -> Finish | None:
        """Finish reason, or None. An end token at the length limit counts as "end"."""
        text = self.text
        if text is not None and text.cut_at is not None:
            return "stop"
        if token in self._ends:
            return "end"
        if len(self.choice.tokens) >= self._limit:
            return "length"
        return "stop" if text is not None and text.stop is not None else None


def draw_uniforms(rows: Sequence[DecodingRow], device: torch.device) -> Tensor:
    """Draw the next uniform random number of each row; returns a tensor [rows]."""
    return torch.tensor([row.uniform() for row in rows], dtype=torch.float64, device=device)


def likeliest(rows: Sequence[DecodingRow], logits: Tensor, drawing: TokenDrawing) -> dict[int, Top]:
    """Return the most likely tokens, from logits [rows, V], for each row whose job requests
    them."""
    asking = [number for number, row in enumerate(rows) if row.job.top_logprobs]
    if not asking:
        return {}
    index = torch.tensor(asking, device=logits.device)
    scores = drawing.scaled(logits)[index].log_softmax(-1)
    count = min(max(rows[number].job.top_logprobs for number in asking), scores.shape[-1])
    values, ids = scores.topk(count, dim=-1)
    return {
        number: tuple(zip(i, v, strict=True))[: rows[number].job.top_logprobs]
        for number, i, v in zip(asking, ids.tolist(), values.tolist(), strict=True)
    }
