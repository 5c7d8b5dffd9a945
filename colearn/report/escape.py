"""Text of agents and tasks on its way into a page: all of it passes through here."""

from __future__ import annotations

import html
from typing import Any

from colearn.text import printable


def escape(text: Any) -> str:
    """Text for an element or an attribute."""
    return html.escape(printable(str(text)))
