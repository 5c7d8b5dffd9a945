"""Limits on the number of tokens that an agent may write in a turn."""

from __future__ import annotations

from dataclasses import replace

from colearn.contract import Sampling
from colearn.contract.types import AnswerLimits


def within_limits(sampling: Sampling, limits: AnswerLimits | None, room: int | None) -> Sampling:
    """Return sampling parameters with the smallest of three token limits: the agent's
    `sampling.max_tokens`, the observation's limit, and `room`. `room` is the model's maximum length
    minus the length of the history, in tokens (None: unlimited). The observation's stop strings are
    added to the agent's stop strings."""
    max_tokens, stop = sampling.max_tokens, sampling.stop
    if room is not None:
        max_tokens = min(max_tokens, room)
    if limits is not None:
        max_tokens = min(max_tokens, limits.max_tokens or max_tokens)
        stop = tuple(dict.fromkeys((*stop, *limits.stop)))
    if (max_tokens, stop) == (sampling.max_tokens, sampling.stop):
        return sampling
    return replace(sampling, max_tokens=max_tokens, stop=stop)
