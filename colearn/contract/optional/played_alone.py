"""Optional interface: a task whose reward terms for cooperation can be left out."""

from __future__ import annotations

from typing import Any

from .option import TaskOption


class PlayedAlone(TaskOption):
    """A task with reward terms for cooperation, which `wrapper: single` leaves out."""

    def alone(self) -> Any:
        """The variant of the task that one agent plays for the whole team; None: the task is used
        unchanged."""
        return None
