"""JSON that somebody else wrote: a model, a user's file, a data set."""

from __future__ import annotations

import json
from typing import Any

from .text import is_unicode

DEEPEST = 64
"""Lists and objects within each other: what copies, checks or writes a value recurses."""


def read_json(text: str) -> Any:
    """The value: at most `DEEPEST` deep, its texts Unicode.

    Errors: ValueError whose message says what is wrong, to follow on the name of the text.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("is no JSON") from None
    if not _shallow(value, DEEPEST):
        raise ValueError(f"holds more than {DEEPEST} lists and objects within each other")
    if not is_unicode(json.dumps(value, ensure_ascii=False)):
        raise ValueError("holds half of a surrogate pair, which is no text")
    return value


def _shallow(value: Any, deepest: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    inside = value.values() if isinstance(value, dict) else value
    return deepest > 0 and all(_shallow(one, deepest - 1) for one in inside)
