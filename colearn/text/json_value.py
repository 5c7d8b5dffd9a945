"""Strict JSON parser for untrusted text: model output, user files, data sets."""

from __future__ import annotations

import json
import math
from typing import Any

from .printable import is_unicode

DEEPEST = 64
"""Maximum nesting depth, since copying, checking and writing a value are recursive."""


def read_json(text: str, *, finite: bool = False) -> Any:
    """Parse a JSON value of depth at most `DEEPEST` whose strings are valid Unicode. `finite` also
    rejects NaN and numbers beyond the range of a float.

    Errors: ValueError with a message to append to the name of the text.
    """
    strict: dict[str, Any] = {}
    if finite:
        strict = {"parse_constant": _finite, "parse_float": _finite}
    try:
        value = json.loads(text, **strict)
    except (ValueError, RecursionError):
        raise ValueError("is no JSON") from None
    if not _shallow(value, DEEPEST):
        raise ValueError(f"holds more than {DEEPEST} lists and objects within each other")
    # dumping is slow, and text without escapes holds no other characters than its own
    if not is_unicode(json.dumps(value, ensure_ascii=False) if "\\u" in text else text):
        raise ValueError("holds half of a surrogate pair, which is no text")
    return value


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _shallow(value: Any, deepest: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    inside = value.values() if isinstance(value, dict) else value
    return deepest > 0 and all(_shallow(one, deepest - 1) for one in inside)
