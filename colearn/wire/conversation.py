"""Messages as turns: a system text, (user, assistant) texts that have been, and what is said now.

Tools are announced in the system text. Tool results, and whatever else no assistant wrote, are the
user's side of a turn; neighbouring messages of one side are one text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .errors import ServeError
from .schema import ChatRequest, Message
from .tools import announce, write_call, write_response

Entry = tuple[str, str]
"""A message as (role, text), tool calls written out."""


@dataclass(frozen=True, slots=True)
class SentConversation:
    system: str | None
    """The messages' own, with the tools; None: there is neither."""
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


def system_text(asked: ChatRequest) -> str | None:
    """Errors: ServeError 400 for an empty system message."""
    first = asked.messages[0]
    own = first.text if first.speaker == "system" else None
    if own == "":
        raise ServeError(
            400,
            "the system message is empty; leave it out",
            param="messages.0.content",
            code="invalid_value",
        )
    functions = asked.offered
    if not functions:
        return own
    shown = announce([function.model_dump(exclude_none=True) for function in functions])
    return shown if own is None else f"{own}\n\n{shown}"


def entries(messages: Sequence[Message]) -> tuple[Entry, ...]:
    """All messages but a first system message."""
    rest = messages[1:] if messages[0].speaker == "system" else messages
    return tuple((message.speaker, _text(message)) for message in rest)


def join(said: Sequence[Entry]) -> str:
    """Neighbouring messages of one side as one text."""
    return "\n".join(
        write_response(text) if speaker == "tool" else text for speaker, text in said if text
    )


def read_conversation(asked: ChatRequest) -> SentConversation:
    """Errors: ServeError 400 where the last message is an assistant's, or there is only a system
    message."""
    system, sent = system_text(asked), entries(asked.messages)
    if not sent or sent[-1][0] == "assistant":
        raise ServeError(
            400,
            "the last message must be the user's or a tool's",
            param="messages",
            code="invalid_value",
        )
    called = False
    for number, message in enumerate(asked.messages):
        called = called or bool(message.calls)
        if message.role == "tool" and not called:
            raise ServeError(
                400,
                f"message {number} is a tool's, and no assistant has called one",
                param=f"messages.{number}.role",
                code="invalid_value",
            )
    turns: list[tuple[str, str]] = []
    user: list[Entry] = []
    assistant: list[Entry] = []
    for entry in sent:
        if entry[0] == "assistant":
            assistant.append(entry)
            continue
        if assistant:
            turns.append((join(user), join(assistant)))
            user, assistant = [], []
        user.append(entry)
    return SentConversation(system, tuple(turns), join(user))


def _text(message: Message) -> str:
    calls = [write_call(call.function.name, call.function.read()) for call in message.calls]
    return "\n".join((*((message.text,) if message.text else ()), *calls))
