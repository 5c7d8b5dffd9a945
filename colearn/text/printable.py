"""Sanitises text: replaces unprintable characters, detects lone surrogates, and escapes HTML."""

from __future__ import annotations

import html
import re
from typing import Any

_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def printable(text: str) -> str:
    """Replaces characters that HTML and XML do not allow with U+FFFD."""
    return _UNPRINTABLE.sub("\ufffd", text)


def escape(text: Any) -> str:
    """Escapes a text for use in an element or an attribute of a page."""
    return html.escape(printable(str(text)))


def is_unicode(text: str) -> bool:
    """Whether a text has no lone surrogates. JSON allows lone surrogates, but tokenizers and files
    do not."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
