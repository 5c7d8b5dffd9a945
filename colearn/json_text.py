"""Strict JSON parser for untrusted text: model output, user files, data sets."""

from __future__ import annotations

import json
from typing import Any

from .text import is_unicode

DEEPEST = 64
"""Maximum nesting depth: copying, checking and writing a value are recursive."""


def read_json(text: str) -> Any:
    """Parse a JSON value of depth at most `DEEPEST` whose strings are valid Unicode.

    Errors: ValueError with a message to append to the name of the text.
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
