"""Sanitises text that leaves the process: for terminals and files, pages, and spreadsheets."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Beginnings of a cell that a spreadsheet reads as a formula; the last four in full width."""
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def printable(text: str) -> str:
    """Replaces characters that HTML and XML do not allow with U+FFFD."""
    return _UNPRINTABLE.sub("\ufffd", text)


def printable_data(value: Any) -> Any:
    """Applies `printable` to every text of plain data, including the keys of mappings."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {printable_data(key): printable_data(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [printable_data(part) for part in value]
    return value


def escape(text: Any) -> str:
    """Escapes a text for use in an element or an attribute of a page."""
    return html.escape(printable(str(text)))


def cell(text: Any) -> str:
    """Returns a text as a cell of a CSV file. A text that a spreadsheet would run as a formula gets
    an apostrophe in front; a number stays as it is."""
    content = str(text)
    runs = content.startswith(_FORMULA) and not _is_number(content)
    return printable(f"'{content}" if runs else content)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_unicode(text: str) -> bool:
    """Whether a text has no lone surrogates. JSON allows lone surrogates, but tokenizers and files
    do not."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
