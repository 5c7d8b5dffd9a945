"""Console that prints texts as they are."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from .printable import printable


class Terminal(Console):
    """A console of rich without markup and emoji codes: `[b]` and `:cat:` in a name or in an answer
    stay as they are. Control characters are replaced by U+FFFD."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Convert a text that is printed, or that is the cell or the title of a table."""
        return super().render_str(printable(text), **options | {"markup": False, "emoji": False})
