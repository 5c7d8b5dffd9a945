"""Limits on the number of tokens that an agent may write in a turn."""

from __future__ import annotations

from dataclasses import replace

from colearn.contract import Sampling
from colearn.types import AnswerLimits


def within_limits(sampling: Sampling, limits: AnswerLimits | None, room: int | None) -> Sampling:
    """Return sampling parameters with the smallest of three token limits: the agent's
    `sampling.max_tokens`, the observation's limit, and `room`. `room` is the model's maximum length
    minus the length of the history, in tokens (None: unlimited). The observation's stop strings are
    added to the agent's stop strings."""
    most, stop = sampling.max_tokens, sampling.stop
    if room is not None:
        most = min(most, room)
    if limits is not None:
        most = min(most, limits.max_tokens or most)
        stop = tuple(dict.fromkeys((*stop, *limits.stop)))
    if (most, stop) == (sampling.max_tokens, sampling.stop):
        return sampling
    return replace(sampling, max_tokens=most, stop=stop)
