"""State of one action during decoding: its random numbers, its text so far and its finish
reason."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from colearn.types import Finish

from .growing_text import GrowingText
from .job import Choice, Job, Top
from .sampling import TokenDrawing


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
            self.text = GrowingText(job.chat.decode, sampling.stop, job.cut_stops)

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
        return grown

    def finish(self) -> str:
        """Set the completed action's text and history; returns the part of the text that a stream
        has not received yet."""
        choice, text = self.choice, self.text
        rest = "" if text is None else text.finish()
        if text is not None and (self.job.streams or text.cut_at is not None):
            choice.text = text.text
        else:
            choice.text = self.job.chat.decode(tuple(choice.tokens))
        choice.history = self.job.request.history.act(choice.tokens)
        return rest

    def _finish(self, token: int) -> Finish | None:
        """Finish reason, or None. An end token at the length limit counts as "end"."""
        text = self.text
        if text is not None and text.cut_at is not None:
            return "stop"
        if token in self._ends:
            return "end"
        if len(self.choice.tokens) >= self._limit:
            return "length"
        return "stop" if text is not None and text.stopped else None


def draw_uniforms(rows: Sequence[DecodingRow], device: torch.device) -> Tensor:
    """Draw the next uniform random number of each row; returns a tensor [rows]."""
    return torch.tensor([row.uniform() for row in rows], dtype=torch.float64, device=device)


def likeliest(rows: Sequence[DecodingRow], logits: Tensor, drawing: TokenDrawing) -> dict[int, Top]:
    """Return the most likely tokens, from logits [rows, V], for each row whose job requests
    them."""
    asking = [number for number, row in enumerate(rows) if row.job.top_logprobs]
    if not asking:
        return {}
    some = torch.tensor(asking, device=logits.device)
    scores = drawing.scaled(logits)[some].log_softmax(-1)
    count = min(max(rows[number].job.top_logprobs for number in asking), scores.shape[-1])
    values, ids = scores.topk(count, dim=-1)
    return {
        number: tuple(zip(i, v, strict=True))[: rows[number].job.top_logprobs]
        for number, i, v in zip(asking, ids.tolist(), values.tolist(), strict=True)
    }
