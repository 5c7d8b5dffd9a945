"""Reads chat templates, fixes the date in a template, renders templates, and splits the rendered
text at the messages. Rendering has a time limit, since templates are untrusted programs."""

from __future__ import annotations

import ctypes
import inspect
import threading
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from colearn.errors import ConfigError, reason_of
from colearn.programs.files.first_opening import check_template
from colearn.text.notes import note_once

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

SECONDS = 5.0
"""Time limit in seconds for rendering one conversation of placeholders; legitimate templates take
milliseconds."""


_USER, _ANSWER, _NEXT = "\ue000first\ue000", "\ue000answer\ue000", "\ue000next\ue000"
_DIRECTIVES = "aAbBcdDeFHIjmMpSTuUVwWxXyYZ"
_CLOCK = """\
{{%- macro strftime_now(format) -%}}
    {{{{- format{replaced} -}}}}
{{%- endmacro -%}}
"""


class Pieces(NamedTuple):
    """A template's texts around messages."""

    opening: str
    """The text before the first user message."""
    between: str
    """The text between an answer and the next user message."""
    after: str
    """The text between a user message and the following answer."""
    lead: str
    """White space that follows `after` once there is an answer."""


class _TooLong(BaseException):
    """Raised in a rendering thread to end the thread. Templates cannot catch this exception."""


def read_template(
    tokenizer: PreTrainedTokenizerBase, chat: str, settings: Mapping[str, Any]
) -> str | None:
    """Read the template that `agents.*.chat` names; None means plain text.

    Errors: ConfigError for a file that is missing or not UTF-8, for a tokenizer with several
    templates of which none is the default, and for a template that does not accept these settings.
    """
    if chat == "plain":
        return None
    if chat == "auto":
        known: str | dict[str, str] | None = tokenizer.chat_template
        if isinstance(known, dict):
            raise ConfigError(
                f"agents.chat: the tokenizer has the templates {', '.join(sorted(known))} and none "
                "named default; write one of them into a .jinja file and name it"
            )
        if known is None:
            note_once(
                f"agents.chat: {tokenizer.name_or_path or 'the tokenizer'} has no chat template; "
                "messages are written as plain text (chat: plain), or give a .jinja file"
            )
        else:
            check_template(known, settings)
        return known
    path = Path(chat)
    if not path.is_file():
        raise ConfigError(f"agents.chat: no file {path}; give 'auto', 'plain' or a .jinja file")
    try:
        template = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ConfigError(f"agents.chat: {path} is not UTF-8 text; save it as UTF-8") from None
    check_template(template, settings)
    return template


def dated(source: str, today: date) -> str:
    """Fix the date of a template by replacing transformers' `strftime_now` with a macro."""
    if "strftime_now" not in source:
        return source
    directives = ((f"%{letter}", today.strftime(f"%{letter}")) for letter in _DIRECTIVES)
    return (
        _CLOCK.format(replaced="".join(f" | replace({a!r}, {b!r})" for a, b in directives)) + source
    )


def render(
    tokenizer: PreTrainedTokenizerBase,
    template: str,
    messages: Sequence[Mapping[str, str]],
    arguments: Mapping[str, Any],
    *,
    prompted: bool = True,
) -> str:
    """Render `messages`. If `prompted` is true, the text that opens an answer follows.

    Errors: ConfigError for a template that does not parse, raises, or takes too long.
    """
    text: list[str] = []
    raised: list[BaseException] = []

    def work() -> None:
        try:
            text.append(
                tokenizer.apply_chat_template(
                    list(messages),
                    chat_template=template,
                    tokenize=False,
                    add_generation_prompt=prompted,
                    **arguments,
                )
            )
        except BaseException as error:  # noqa: BLE001 - re-raised in the waiting thread
            raised.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(SECONDS)
    if thread.is_alive():
        _end(thread)
        raise ConfigError(
            f"agents.chat: the template has not ended after {SECONDS:g} seconds; give another "
            ".jinja template or 'plain'"
        )
    if raised:
        raise ConfigError(
            f"agents.chat: the template cannot be rendered ({type(raised[0]).__name__}: "
            f"{reason_of(raised[0])}); give another .jinja template or 'plain'"
        )
    return text[0]


def split_turns(
    tokenizer: PreTrainedTokenizerBase,
    template: str,
    system: str | None,
    arguments: Mapping[str, Any],
) -> Pieces:
    """Return the texts of the template around messages.

    Errors: as for `render`; ConfigError if the template drops or repeats a message, or if an
    argument is one that the tokenizer sets.
    """
    for name in inspect.signature(tokenizer.apply_chat_template).parameters:
        if name in arguments:
            raise ConfigError(
                f"agents.template.{name}: belongs to the tokenizer, not the template; leave it out"
            )
    messages = [{"role": "system", "content": system}] if system else []
    messages += [
        {"role": "user", "content": _USER},
        {"role": "assistant", "content": _ANSWER},
        {"role": "user", "content": _NEXT},
    ]
    text = render(tokenizer, template, messages, arguments)
    if any(text.count(mark) != 1 for mark in (_USER, _ANSWER, _NEXT)):
        raise ConfigError(
            "agents.chat: the template drops or repeats a message, so turns cannot be appended; "
            "give another .jinja template or 'plain'"
        )
    opening, rest = text.split(_USER)
    answered, rest = rest.split(_ANSWER)
    between, after = rest.split(_NEXT)
    lead = answered.removeprefix(after) if answered.startswith(after) else ""
    return Pieces(opening, between, after, lead if lead.isspace() else "")


def _end(thread: threading.Thread) -> None:
    """Raise `_TooLong` in a thread, at the thread's next Python instruction."""
    assert thread.ident is not None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread.ident), ctypes.py_object(_TooLong)
    )
