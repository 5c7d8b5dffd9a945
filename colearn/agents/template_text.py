"""Chat template rendering with a time limit: templates are untrusted programs."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from colearn.errors import ConfigError, reason_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

SECONDS = 5.0
"""Time limit for one conversation of placeholders; templates take milliseconds."""


class _TooLong(BaseException):
    """Raised in a rendering thread to end it; no template can catch it."""


def render(
    tokenizer: PreTrainedTokenizerBase,
    template: str,
    messages: Sequence[Mapping[str, str]],
    arguments: Mapping[str, Any],
    *,
    prompted: bool = True,
) -> str:
    """The rendered `messages`, if `prompted` with the opening of an answer.

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


def _end(thread: threading.Thread) -> None:
    """Raises `_TooLong` in a thread at its next Python instruction."""
    assert thread.ident is not None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread.ident), ctypes.py_object(_TooLong)
    )
