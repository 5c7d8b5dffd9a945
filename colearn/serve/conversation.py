"""Messages as a private history: a system prompt, turns that have been, and what is said now."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from colearn.agents import ChatFormat
from colearn.generate.token_history import TokenHistory
from colearn.types import Action

from .agent import ServedChat
from .errors import ServeError
from .schema import Message


@dataclass(frozen=True, slots=True)
class SentConversation:
    system: str | None
    """The messages' own; None: they begin with the user's."""
    turns: tuple[tuple[str, str], ...]
    """(user, assistant) texts before this turn."""
    said: str
    """The user's text that is to be answered."""

    @property
    def characters(self) -> int:
        """Of all texts."""
        before = sum(len(text) for turn in self.turns for text in turn)
        return len(self.system or "") + before + len(self.said)

    @property
    def opens(self) -> bool:
        return not self.turns

    @property
    def continues(self) -> bool:
        """Only the new text: the rest is left to the session."""
        return not self.turns and self.system is None


def read_conversation(messages: Sequence[Message]) -> SentConversation:
    """Errors: ServeError 400 where the roles do not alternate, from the user's to the user's."""
    own = messages[0].text if messages[0].speaker == "system" else None
    if own == "":
        raise ServeError(
            400,
            "the system message is empty; leave it out",
            param="messages.0.content",
            code="invalid_value",
        )
    rest = messages if own is None else messages[1:]
    first = len(messages) - len(rest)
    for number, message in enumerate(rest):
        expected = "assistant" if number % 2 else "user"
        if message.speaker != expected:
            raise ServeError(
                400,
                f"message {first + number} is the {message.speaker}'s and should be the "
                f"{expected}'s: after an optional system message, user and assistant alternate",
                param=f"messages.{first + number}.role",
                code="invalid_value",
            )
    if len(rest) % 2 == 0:
        raise ServeError(
            400,
            "the last message must be the user's",
            param="messages",
            code="invalid_value",
        )
    texts = [message.text for message in rest]
    turns = tuple(zip(texts[:-1:2], texts[1::2], strict=True))
    return SentConversation(own, turns, texts[-1])


def whole_history(
    conversation: SentConversation, chat: ServedChat, window: int | None
) -> TokenHistory:
    """All of it as new ids; earlier answers are tokenised from their texts.

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
    """The history with what the user says now, after the action `last`.

    Errors: WindowExceeded.
    """
    seen = chat.open(said) if last is None else chat.continuation(said, last)
    return history.observe(seen.tokens, window)


def digest(before: bytes, *texts: str | None) -> bytes:
    """A fingerprint of everything said so far and of `texts` after it."""
    found = hashlib.blake2b(before, digest_size=16)
    for text in texts:
        part = b"" if text is None else text.encode("utf-8", "surrogatepass")
        found.update(f"{text is None}:{len(part)}:".encode() + part)
    return found.digest()
