"""Optional interface: states as text and pictures."""

from __future__ import annotations

from typing import Any

from colearn.contract.picture import Picture

from .option import TaskOption


class Drawable(TaskOption):
    """A task whose states can be shown in transcripts, reports and the watch page."""

    def render(self, state: Any) -> str | None:
        """The state as text for transcripts; None: no text."""
        return None

    def picture(self, state: Any) -> Picture | None:
        """The state as a picture for reports and the watch page; None: no picture."""
        return None

    def svg(self, state: Any) -> str | None:
        """An SVG drawing of the episode up to `state` for the report; None: no drawing."""
        return None
