"""Strict JSON parser for untrusted text: model output, user files, data sets."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from .printable import is_unicode

DEEPEST = 64
"""Maximum nesting depth, since copying, checking and writing a value are recursive."""


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """Return the lines of a data file that are not blank, each with its line number (from 1). Lines
    end with LF, CR LF or CR; a JSON string may contain none of these line ends. A byte order mark
    is dropped."""
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text.removeprefix("\ufeff")), start=1):
        if line.strip():
            yield number, line


def read_row(text: str) -> Any:
    """Parse a row of a data file as `read_json` does, but reject numbers that are not finite.

    Errors: as for `read_json`.
    """
    return read_json(text, finite=True)


class Rejected(ValueError):
    """Raised for text that is valid JSON but contains a value that this parser rejects."""


def read_json(text: str, *, finite: bool = False) -> Any:
    """Parse a JSON value of depth at most `DEEPEST` whose strings are valid Unicode and whose
    objects repeat no key. `finite` also rejects NaN and numbers beyond the range of a float.

    Errors: ValueError with a message to append to the name of the text.
    """
    strict: dict[str, Any] = {"parse_constant": _finite, "parse_float": _finite} if finite else {}
    try:
        value = json.loads(text, object_pairs_hook=unique_keys, **strict)
    except Rejected:
        raise
    except (ValueError, RecursionError):
        raise ValueError("is no JSON") from None
    if not _shallow(value, DEEPEST):
        raise ValueError(f"holds more than {DEEPEST} lists and objects within each other")
    # dumping is slow, and text without escapes holds no other characters than its own
    if not is_unicode(json.dumps(value, ensure_ascii=False) if "\\u" in text else text):
        raise ValueError("holds half of a surrogate pair, which is no text")
    return value


def copied(value: Any) -> Any:
    """Returns a copy of nested mappings and lists; other objects are not copied. Code of the user
    receives such copies of data rows, so that it cannot change the rows of later episodes."""
    if type(value) is dict:
        return {key: copied(entry) for key, entry in value.items()}
    return [copied(entry) for entry in value] if type(value) is list else value


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise Rejected("holds NaN or a number beyond the range of a float")
    return number


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these pairs, for json.loads, which by itself keeps the last of two equal keys
    and drops the other. Errors: Rejected."""
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Rejected(f"holds the key {twice[:100]!r} twice in one object")
    return value


def _shallow(value: Any, deepest: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    inside = value.values() if isinstance(value, dict) else value
    return deepest > 0 and all(_shallow(entry, deepest - 1) for entry in inside)
