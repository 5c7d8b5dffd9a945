"""Which requests continue an agent's context, and why the others do not."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from colearn.types import Limits, Prompt
from colearn.wire.conversation import Entry, entries, join, read_conversation, system_text
from colearn.wire.schema import ChatRequest

Reason = Literal[
    "continued", "first", "new", "system", "dropped", "reordered", "rewritten", "others"
]
REASONS: tuple[Reason, ...] = ("new", "system", "dropped", "reordered", "rewritten", "others")
"""Why a request opens another context than the agent's first: it shares no message with the last
one; its system text or its tools differ; messages are missing, in another order, or differ; or
words that the agent did not say are put into its mouth."""


@dataclass(frozen=True, slots=True)
class Context:
    """What an agent has seen and said, message by message."""

    system: str | None
    said: tuple[Entry, ...]

    def answered(self, text: str) -> Context:
        """With the agent's answer, as its program was told it."""
        return Context(self.system, (*self.said, ("assistant", text.strip())))

    @property
    def size(self) -> int:
        """UTF-8 bytes of all texts; an upper bound on their tokens."""
        texts = (self.system or "", *(text for _, text in self.said))
        return sum(len(text.encode()) for text in texts)


def read_request(asked: ChatRequest, before: Context | None) -> tuple[Prompt, Context, Reason]:
    """What the agent is newly shown, what it has seen with it, and why the context is this one.

    Errors: ServeError 400 for messages that cannot be answered.
    """
    conversation = read_conversation(asked)
    sent = tuple((role, text.strip()) for role, text in entries(asked.messages))
    context = Context(system_text(asked), sent)
    reason = _reason(context, before)
    most = asked.max_completion_tokens or asked.max_tokens
    limits = Limits(most, asked.stops) if most or asked.stops else None
    if reason == "continued":
        assert before is not None
        new = entries(asked.messages)[len(before.said) :]
        return Prompt(join(new), limits=limits), context, reason
    fresh = Prompt(
        conversation.said,
        fresh=True,
        system=conversation.system,
        turns=conversation.turns,
        limits=limits,
    )
    return fresh, context, reason


def _reason(now: Context, before: Context | None) -> Reason:
    if before is None:
        return "first"
    old, sent = before.said, now.said
    if now.system != before.system:
        return "system"
    if sent[: len(old)] == old:
        new = sent[len(old) :]
        return "others" if any(role == "assistant" for role, _ in new) else "continued"
    missing = Counter(old) - Counter(sent)
    if missing == Counter(old):
        return "new"
    if not missing:
        return "reordered"
    kept = tuple(entry for entry in old if entry not in missing)
    return "dropped" if sent[: len(kept)] == kept else "rewritten"
