"""Token ids and fingerprint of a conversation."""

from __future__ import annotations

import hashlib

from colearn.agents import ChatFormat, dialogue_spans
from colearn.client.protocol.conversation import SentConversation
from colearn.contract import TokenHistory
from colearn.types import Action

from .agent import ServedChat


def whole_history(
    conversation: SentConversation, chat: ServedChat, window: int | None
) -> TokenHistory:
    """Tokenises a whole conversation as its template writes it, earlier answers from their texts.

    Errors: WindowExceeded; ConfigError for a conversation that the template drops parts of.
    """
    history = TokenHistory()
    for span in dialogue_spans(chat, conversation.turns, conversation.said):
        history = history.act(span.tokens) if span.answer else history.observe(span.tokens, window)
    return history


def observe(
    history: TokenHistory, chat: ChatFormat, said: str, last: Action | None, window: int | None
) -> TokenHistory:
    """Extends a history by the user's text, after the action `last`.

    Errors: WindowExceeded.
    """
    seen = chat.open(said) if last is None else chat.continuation(said, last)
    return history.observe(seen.tokens, window)


def digest(before: bytes, *texts: str | None) -> bytes:
    """Extends the fingerprint `before` by `texts`."""
    fingerprint = hashlib.blake2b(before, digest_size=16)
    for text in texts:
        part = b"" if text is None else text.encode("utf-8", "surrogatepass")
        fingerprint.update(f"{text is None}:{len(part)}:".encode() + part)
    return fingerprint.digest()
