"""Elements of OpenAI's `logprobs.content`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def logprob_entry(
    token: str, data: bytes, logprob: float, top: Iterable[tuple[str, bytes, float]] = ()
) -> dict[str, Any]:
    """Returns the element of a token with the bytes that it contributes to the content. `top` are
    the most likely tokens: text, bytes, log-probability."""
    return {
        "token": token,
        "logprob": logprob,
        "bytes": list(data),
        "top_logprobs": [
            {"token": text, "logprob": value, "bytes": list(raw)} for text, raw, value in top
        ],
    }
