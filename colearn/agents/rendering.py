"""Rendering a chat template, which is a program that somebody else wrote: with an end."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from colearn.errors import ConfigError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

SECONDS = 5.0
"""For one conversation of placeholders; templates take milliseconds."""


class _TooLong(BaseException):
    """Ends a rendering; no template catches it."""


def render(
    tokenizer: PreTrainedTokenizerBase,
    template: str,
    messages: Sequence[Mapping[str, str]],
    arguments: Mapping[str, Any],
) -> str:
    """The text of `messages` and the opening of an answer.

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
                    add_generation_prompt=True,
                    **arguments,
                )
            )
        except BaseException as error:  # noqa: BLE001 - it is told of where it is waited for
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
        reason = " ".join(str(raised[0]).split())[:160]
        raise ConfigError(
            f"agents.chat: the template cannot be rendered ({type(raised[0]).__name__}: {reason}); "
            "give another .jinja template or 'plain'"
        )
    return text[0]


def _end(thread: threading.Thread) -> None:
    """Raise within a thread, at its next line of Python."""
    assert thread.ident is not None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread.ident), ctypes.py_object(_TooLong)
    )
