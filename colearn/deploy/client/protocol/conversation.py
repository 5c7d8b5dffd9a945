"""Splits messages into turns: a system text, earlier (user, assistant) texts, and the text to
answer.

Tools are announced in the system text. Messages of users and tools, and system messages behind
them, form the user text of a turn, and assistant messages form the assistant text. If adjacent
messages belong to the same text, they are joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile

from .errors import ServeError
from .schema import ChatRequest, Message
from .tool_call_text import announce, write_answer, write_response
from .tool_results import check_results

Entry = tuple[str, str]
"""A message as (role, text), with its tool calls as text."""


@dataclass(frozen=True, slots=True)
class SentConversation:
    """The messages of a request, split into turns."""

    system: str | None
    """The system message and the announced tools; None if there is neither."""
    turns: tuple[tuple[str, str], ...]
    """(user, assistant) texts before this turn."""
    said: str
    """The user's text that the agent answers."""

    @property
    def characters(self) -> int:
        """Length of all texts, in characters."""
        before = sum(len(text) for turn in self.turns for text in turn)
        return len(self.system or "") + before + len(self.said)

    @property
    def opens(self) -> bool:
        """True if the conversation has no earlier turns."""
        return not self.turns

    @property
    def continues(self) -> bool:
        """True if the request contains only the new text, because the session holds the earlier
        turns."""
        return not self.turns and self.system is None


def system_text(request: ChatRequest) -> str | None:
    """Returns the system messages at the beginning, as paragraphs of one text, with the announced
    tools.

    Errors: ServeError 400 for an empty system message.
    """
    texts = [message.spoken for message in request.messages[: _systems(request.messages)]]
    if "" in texts:
        raise ServeError(
            400,
            "the system message is empty; leave it out",
            param=f"messages.{texts.index('')}.content",
            code="invalid_value",
        )
    text = "\n\n".join(texts) or None
    functions = request.offered
    if not functions:
        return text
    tools = announce([function.model_dump(exclude_none=True) for function in functions])
    return tools if text is None else f"{text}\n\n{tools}"


def entries(messages: Sequence[Message]) -> tuple[Entry, ...]:
    """Returns all messages except the system messages at the beginning. Results of tools are in the
    order of their calls."""
    ordered = _in_order_of_calls(messages[_systems(messages) :])
    return tuple((message.speaker, _text(message)) for message in ordered)


def _systems(messages: Sequence[Message]) -> int:
    """Number of system messages at the beginning."""
    return sum(1 for _ in takewhile(lambda message: message.speaker == "system", messages))


def _in_order_of_calls(messages: Sequence[Message]) -> list[Message]:
    """Sorts the adjacent results of tools by the calls before them: the text of a result does not
    name its call, so an agent matches results and calls by their order, as in training."""
    ordered: list[Message] = []
    calls: list[str | None] = []
    for tools, group in groupby(messages, lambda message: message.role == "tool"):
        adjacent = list(group)
        if tools:
            adjacent.sort(key=lambda message: calls.index(message.tool_call_id))
        calls = [call.id for message in adjacent for call in message.calls]
        ordered += adjacent
    return ordered


def join(entries: Sequence[Entry]) -> str:
    """Joins adjacent messages of the user text (users and tools), or of the assistant text, into
    one text. An empty message is left out, but not an empty result of a tool."""
    return "\n".join(
        write_response(text) if speaker == "tool" else text
        for speaker, text in entries
        if text or speaker == "tool"
    )


def read_conversation(request: ChatRequest) -> SentConversation:
    """Splits messages into turns.

    Errors: ServeError 400 if the last message is not from a user or a tool, if results of tools do
    not match their calls, or if several assistants have answered.
    """
    check_results(request.messages)
    _check_names(request.messages)
    system, dialogue = system_text(request), entries(request.messages)
    if not dialogue or dialogue[-1][0] == "assistant":
        raise ServeError(
            400,
            "the last message must be the user's or a tool's",
            param="messages",
            code="invalid_value",
        )
    turns: list[tuple[str, str]] = []
    user: list[Entry] = []
    assistant: list[Entry] = []
    for entry in dialogue:
        if entry[0] == "assistant":
            assistant.append(entry)
            continue
        if assistant:
            turns.append((join(user), join(assistant)))
            user, assistant = [], []
        user.append(entry)
    return SentConversation(system, tuple(turns), join(user))


def _text(message: Message) -> str:
    calls = ((call.function.name, call.function.read()) for call in message.calls)
    return write_answer(message.spoken, calls)


def _check_names(messages: Sequence[Message]) -> None:
    """The names of assistants are not written, since an agent's own answers have none in training.

    Errors: ServeError 400 for assistant messages with different names.
    """
    names: set[str] = set()
    for number, message in enumerate(messages):
        if message.role == "assistant" and message.name is not None:
            names.add(message.name)
        if len(names) > 1:
            raise ServeError(
                400,
                f"message {number} is another assistant's; send what others say with the role user",
                param=f"messages.{number}.name",
                code="invalid_value",
            )
