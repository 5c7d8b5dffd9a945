"""Context matching: decides whether a request continues an agent's context, and gives the reason if
it does not."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from colearn.contract.types import AnswerLimits, Observation
from colearn.deploy.client.protocol.conversation import (
    Entry,
    entries,
    join,
    read_conversation,
    system_text,
)
from colearn.deploy.client.protocol.schema import ChatRequest

Reason = Literal[
    "continued", "first", "new", "system", "dropped", "reordered", "rewritten", "others"
]
REASONS: tuple[Reason, ...] = ("new", "system", "dropped", "reordered", "rewritten", "others")
"""Reasons why a request opens a new context after the agent's first one. `new`: the request shares
no message with the last context. `system`: the system text or the tools differ. `dropped`: messages
are missing. `reordered`: messages are in another order. `rewritten`: messages differ. `others`: new
messages include assistant messages that the agent did not write."""


@dataclass(frozen=True, slots=True)
class Context:
    """An agent's private history as a sequence of messages."""

    system: str | None
    said: tuple[Entry, ...]

    def answered(self, text: str) -> Context:
        """Returns the context extended by the agent's answer, in the form that the program
        received."""
        return Context(self.system, (*self.said, ("assistant", text.strip())))

    @property
    def size(self) -> int:
        """Number of UTF-8 bytes of all texts. This number is an upper bound for the number of
        tokens."""
        texts = (self.system or "", *(text for _, text in self.said))
        return sum(len(text.encode()) for text in texts)


def read_request(
    request: ChatRequest, before: Context | None
) -> tuple[Observation, Context, Reason]:
    """Returns the agent's new prompt, the context that includes the prompt, and the reason why the
    context was continued or opened.

    Errors: ServeError 400 for messages without a user or tool message to answer.
    """
    conversation = read_conversation(request)
    texts = tuple((role, text.strip()) for role, text in entries(request.messages))
    context = Context(system_text(request), texts)
    reason = _reason(context, before)
    max_tokens = request.max_completion_tokens or request.max_tokens
    limits = AnswerLimits(max_tokens, request.stops) if max_tokens or request.stops else None
    if reason == "continued":
        assert before is not None
        new = entries(request.messages)[len(before.said) :]
        return Observation(join(new), limits=limits), context, reason
    fresh = Observation(
        conversation.said,
        fresh=True,
        system=conversation.system,
        turns=conversation.turns,
        limits=limits,
    )
    return fresh, context, reason


def _reason(context: Context, before: Context | None) -> Reason:
    if before is None:
        return "first"
    old, current = before.said, context.said
    if context.system != before.system:
        return "system"
    if current[: len(old)] == old:
        new = current[len(old) :]
        return "others" if any(role == "assistant" for role, _ in new) else "continued"
    missing = Counter(old) - Counter(current)
    if missing == Counter(old):
        return "new"
    if not missing:
        return "reordered"
    remaining = tuple(entry for entry in old if entry not in missing)
    return "dropped" if current[: len(remaining)] == remaining else "rewritten"
