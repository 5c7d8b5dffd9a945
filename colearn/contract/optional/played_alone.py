"""Optional interface: a task whose terms for cooperation can be left out."""

from __future__ import annotations

from typing import Any

from .option import TaskOption


class PlayedAlone(TaskOption):
    """A task with reward terms for cooperation, which `wrapper: single` leaves out."""

    def alone(self) -> Any:
        """This task for one agent that plays for the whole team; None: as it is."""
        return None
