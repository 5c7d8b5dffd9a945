"""Reads chat completion requests as calls of an agent, and refuses requests with a field that a
training run cannot honour."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from colearn.deploy.client.protocol.errors import ServeError
from colearn.deploy.client.protocol.schema import ChatRequest

from .contexts import read_request
from .program_run import PendingRequest
from .state import GatewayCall, GatewayState

SAMPLING = ("temperature", "top_p", "top_k", "seed")
"""Fields that would make sampling differ from the trained policy. A temperature is not refused,
because frameworks send one by default: the agent's temperature applies, and the task warns if the
request's temperature differs."""


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


def read_call(
    pending: PendingRequest, state: GatewayState[Any], number: int, max_bytes: int
) -> GatewayCall:
    """Converts a request to call number `number` of the episode at `state`.

    Errors: ServeError 400 for messages without a user or tool message to answer, or for a context
    of more than `max_bytes`.
    """
    prompt, context, reason = read_request(pending.body, state.contexts.get(pending.agent))
    if context.size > max_bytes:
        raise ServeError(
            400,
            f"the context exceeds {max_bytes} bytes (task.max_bytes)",
            param="messages",
            code="context_length_exceeded",
        )
    return GatewayCall(
        number=number,
        name=pending.agent,
        text=prompt.whole,
        fresh=prompt.fresh,
        after=tuple(e.call.number for e in state.events if e.turn == state.turn - 1),
        prompt=prompt,
        request=pending.name,
        offered=tuple(tool.name for tool in pending.body.offered),
        several=pending.body.parallel_tool_calls is not False,
        logprobs=bool(pending.body.logprobs),
        token_ids=bool(pending.body.return_token_ids),
        reasoning=bool(pending.body.include_reasoning),
        temperature=pending.body.temperature,
        context=context,
        reason=reason,
    )


def invalid(field: str, message: str) -> ServeError:
    """Returns the error for a field's invalid value."""
    return ServeError(400, f"'{field}': {message}", param=field, code="invalid_value")
