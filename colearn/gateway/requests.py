"""Checks of chat completion requests: fields that a training run cannot honour."""

from __future__ import annotations

from collections.abc import Collection

from colearn.client.protocol.errors import ServeError
from colearn.client.protocol.schema import ChatRequest

SAMPLING = ("temperature", "top_p", "top_k", "seed")
"""Fields that would sample otherwise than the policy that is trained. A temperature is not refused:
frameworks send one by themselves. The agent's own applies, and the task warns of another one."""


def check_request(body: ChatRequest, ignored: Collection[str]) -> None:
    """Errors: ServeError 400 that names the field and the remedy."""
    for name in SAMPLING[1:]:
        if getattr(body, name) is not None and name not in ignored:
            raise invalid(
                name, "the agent's own `sampling` applies; leave it out, or add it to task.ignore"
            )
    if body.n is not None and body.n != 1:
        raise invalid("n", "must be 1: an episode continues from one answer")
    if body.top_logprobs:
        raise invalid("top_logprobs", "is not recorded in training; leave it out")
    if body.session_id is not None:
        raise invalid("session_id", "is not used here; contexts continue by their messages")


def invalid(field: str, message: str) -> ServeError:
    """Returns the error of a field's value."""
    return ServeError(400, f"'{field}': {message}", param=field, code="invalid_value")
