"""Text of agents and tasks on its way into a page: all of it passes through here."""

from __future__ import annotations

import html
import re
from typing import Any

_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def printable(text: str) -> str:
    """What HTML cannot carry becomes U+FFFD."""
    return _UNPRINTABLE.sub("\ufffd", text)


def escape(text: Any) -> str:
    """Text for an element or an attribute."""
    return html.escape(printable(str(text)))
