"""A choice that is being decoded: its draws, its text as it grows, and when it ends."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from colearn.generate.sampling import Drawing
from colearn.history import ChatFormat
from colearn.types import Finish

from .job import Choice, Job
from .text import GrowingText

Top = tuple[tuple[int, float], ...]
"""The likeliest tokens and their log-probabilities, likeliest first."""


class Row:
    """Row n of the batch's slab is the engine's n-th."""

    def __init__(self, job: Job, number: int, chat: ChatFormat) -> None:
        self.job, self.number = job, number
        self.random = np.random.default_rng(job.seeds[number])
        self.choice: Choice = job.choices[number]
        self.visible_from = job.history.visible_from
        self.ended = False
        self.text: GrowingText | None = None
        if job.streams or job.sampling.stop or job.cut_stops:
            self.text = GrowingText(chat.decode, job.sampling.stop, job.cut_stops)

    def push(self, token: int, logprob: float, top: Top, ends: frozenset[int]) -> str:
        """Note a drawn token, and whether the action ends with it; the text that is now certain."""
        self.choice.tokens.append(token)
        self.choice.logprobs.append(logprob)
        self.choice.top.append(top)
        grown = "" if self.text is None else self.text.push(token)
        finish = self._finish(token, ends)
        if finish is not None:
            self.ended, self.choice.finish = True, finish
        return grown

    def _finish(self, token: int, ends: frozenset[int]) -> Finish | None:
        """By what the action has ended, in the trainer's order."""
        if self.text is not None and self.text.cut_at is not None:
            return "stop"
        if token in ends:
            return "end"
        if len(self.choice.tokens) >= self.job.sampling.max_tokens:
            return "length"
        return "stop" if self.text is not None and self.text.stopped else None


def make_drawing(rows: Sequence[Row], device: torch.device) -> Drawing:
    """How each row draws; its temperature 0 is greedy."""
    return Drawing([row.job.sampling for row in rows], device, greedy=False)


def draw_uniforms(rows: Sequence[Row], device: torch.device) -> Tensor:
    """[rows] the next number of each row's own sequence."""
    return torch.tensor([row.random.random() for row in rows], dtype=torch.float64, device=device)


def likeliest(rows: Sequence[Row], logits: Tensor, drawing: Drawing) -> dict[int, Top]:
    """For the rows whose request asks for them, from logits [rows, V]."""
    asking = [number for number, row in enumerate(rows) if row.job.top_logprobs]
    if not asking:
        return {}
    some = torch.tensor(asking, device=logits.device)
    scores = (logits[some].float() / drawing.temperatures[some, None]).log_softmax(-1)
    count = min(max(rows[number].job.top_logprobs for number in asking), scores.shape[-1])
    values, ids = scores.topk(count, dim=-1)
    return {
        number: tuple(zip(i, v, strict=True))[: rows[number].job.top_logprobs]
        for number, i, v in zip(asking, ids.tolist(), values.tolist(), strict=True)
    }
