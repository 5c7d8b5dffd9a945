"""Token ids and fingerprint of a conversation."""

from __future__ import annotations

import hashlib

from colearn.agents import ChatFormat
from colearn.generate.token_history import TokenHistory
from colearn.types import Action
from colearn.wire.conversation import SentConversation

from .agent import ServedChat


def whole_history(
    conversation: SentConversation, chat: ServedChat, window: int | None
) -> TokenHistory:
    """Tokenises a whole conversation, earlier answers from their texts.

    Errors: WindowExceeded.
    """
    history = TokenHistory()
    last: Action | None = None
    for said, answer in conversation.turns:
        history = observe(history, chat, said, last, window)
        last = Action(answer, chat.spell(answer))
        history = history.act(last.tokens)
    return observe(history, chat, conversation.said, last, window)


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
