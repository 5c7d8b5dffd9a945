"""Converts dialogues in text form to token ids, exactly as the template renders the whole
conversation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from colearn.errors import ConfigError
from colearn.text.reasoning import CLOSE, OPEN

from .encoding import INSIDE, START, Part

Turn = tuple[str, str]
"""(user, assistant) texts."""

_THOUGHT = re.compile(rf"(\s*(?:{OPEN})?\s*)(.*?)(\s*{CLOSE}\s*)(.*)", re.DOTALL)
_CUT = re.compile(rf"(\s*{OPEN}\s*)(.*)", re.DOTALL)
_RESPONSE_END = "</tool_response>"
_RESPONSE = re.compile(rf"(<tool_response>)(.*)({_RESPONSE_END})", re.DOTALL)
_PLACE = re.compile("\ue000([ura])(\\d+)\ue000")
CLOSING = f"\n{CLOSE}\n\n"
"""Text that closes truncated reasoning."""


@dataclass(frozen=True, slots=True)
class Span:
    """Consecutive ids of a dialogue."""

    tokens: tuple[int, ...]
    answer: bool
    """Whether the agent wrote these ids. An answer's end token counts as written by the agent."""


class AnswerEnd(NamedTuple):
    """The text after an answer."""

    space: str
    """White space before the end token."""
    end: int | None
    """The end token, or another special token with which the text begins."""
    rest: str
    """The text after the end token; without one, the whole text."""


class Format(Protocol):
    """The methods of a chat format that dialogues use."""

    end_id: int

    @property
    def reasons(self) -> bool:
        """Whether the template writes reasoning between `<think>` and `</think>`."""

    @property
    def prompting(self) -> str:
        """The template's text between a user message and the following answer."""

    def whole(self, contents: tuple[str, ...]) -> tuple[str, ...]:
        """Render a dialogue with these message contents; return its template texts and
        placeholders."""

    def encode(self, parts: Sequence[Part], before: str | None) -> tuple[int, ...]:
        """Token ids of consecutive texts behind the text `before`, `START` or `INSIDE`; spellings
        of special tokens in message texts are encoded as plain text."""

    def name(self, token: int) -> str:
        """The spelling of a token."""

    def split_end(self, closing: str) -> AnswerEnd:
        """Split the text after an answer at the special token with which it begins, if any."""


def dialogue_spans(
    chat: Format, turns: Sequence[Turn], prompt: str | None = None, *, ended: bool = False
) -> list[Span]:
    """Return the token ids of earlier turns and, with `prompt`, the token ids of the prompt for the
    next answer.

    Prompts and answers alternate. With `ended`, an end token is added after each answer that the
    template closes without an end token. The template decides whether earlier reasoning is kept or
    dropped.

    Errors: ConfigError if the template drops or repeats a message.
    """
    texts: dict[str, str] = {}
    contents = []
    for number, (user, answer) in enumerate(turns):
        for content, parts in (
            _user(number, user),
            _assistant(number, answer, reasons=chat.reasons),
        ):
            texts |= parts
            contents.append(content)
    if prompt is not None:
        content, parts = _user(len(turns), prompt)
        texts |= parts
        contents.append(content)
    return _spans(chat, chat.whole(tuple(contents)), texts, ended=ended)


def split_places(text: str, messages: int) -> tuple[str, ...]:
    """Split a rendered skeleton into template texts and placeholders, alternating.

    Errors: ConfigError if a message is missing, repeated or out of order.
    """
    pieces = tuple(_PLACE.sub("\ue001\\1\\2\ue001", text).split("\ue001"))
    expected = [f"{'ua'[number % 2]}{number // 2}" for number in range(messages)]
    places = pieces[1::2]
    thoughts = [name for name in places if name[0] == "r"]
    if [name for name in places if name[0] != "r"] != expected or any(
        places.count(name) > 1 or places[places.index(name) + 1] != f"a{name[1:]}"
        for name in thoughts
    ):
        raise ConfigError(
            "agents.chat: the template drops or repeats a message, so turns cannot be appended; "
            "give another .jinja template or 'plain'"
        )
    return pieces


def place(side: str, number: int) -> str:
    """Return the placeholder that replaces a text while a template is rendered."""
    return f"\ue000{side}{number}\ue000"


def _user(number: int, text: str) -> tuple[str, dict[str, str]]:
    """Return a user message's content with a placeholder for the text, and the text itself. The
    tags of a tool result stay in the content, since templates recognise tool results by these
    tags."""
    tool = _RESPONSE.fullmatch(text)
    opens, inner, closes = ("", text, "") if tool is None else tool.groups()
    return opens + place("u", number) + closes, {f"u{number}": inner}


def _assistant(number: int, answer: str, *, reasons: bool) -> tuple[str, dict[str, str]]:
    """Return an assistant message's content with placeholders for its texts, and these texts."""
    thought = _THOUGHT.fullmatch(answer) if reasons else None
    cut = _CUT.fullmatch(answer) if reasons and thought is None else None
    if cut is not None:
        opens, reasoning, closes, rest = cut[1], cut[2].rstrip(), CLOSING, ""
    elif thought is not None:
        opens, reasoning, closes, rest = thought.groups()
        opens = opens if OPEN in opens else f"{OPEN}\n"
    else:
        return place("a", number), {f"a{number}": answer}
    content = opens + (place("r", number) if reasoning else "") + closes + place("a", number)
    return content, {f"r{number}": reasoning, f"a{number}": rest}


def _spans(
    chat: Format, pieces: Sequence[str], texts: dict[str, str], *, ended: bool
) -> list[Span]:
    spans: list[Span] = []
    prompt: list[Part] = []
    written: list[Part] = []
    """Parts of the current prompt, and of the current answer."""
    before = pieces[0]
    follows: str | None = START
    for index in range(1, len(pieces), 2):
        name, literal = pieces[index], pieces[index + 1]
        if name[0] == "u":
            prompt += [Part(before), Part(texts[name], said=True)]
            marked = len(_RESPONSE_END) if literal.startswith(_RESPONSE_END) else 0
            shared = marked + _common(literal[marked:], chat.prompting)
            if index + 2 == len(pieces):
                shared = len(literal)
            prompt.append(Part(literal[:shared]))
            spans.append(Span(chat.encode(prompt, follows), answer=False))
            prompt, before, follows = [], literal[shared:], literal[:shared] or INSIDE
            continue
        written += [Part(before), Part(texts[name], said=True)]
        before = literal
        if name[0] == "a":
            space, end, before = chat.split_end(literal)
            if end is None and ended:
                end = chat.end_id
            written.append(Part(space))
            tokens = (*chat.encode(written, follows), *(() if end is None else (end,)))
            spans.append(Span(tokens, answer=True))
            written, follows = [], INSIDE if end is None else chat.name(end)
    return spans


def _common(first: str, second: str) -> int:
    """Return the length of the common prefix of two texts."""
    pairs = enumerate(zip(first, second, strict=False))
    shortest = min(len(first), len(second))
    return next((index for index, (a, b) in pairs if a != b), shortest)
