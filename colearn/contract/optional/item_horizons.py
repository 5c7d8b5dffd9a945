"""Optional interface: horizons of single items."""

from __future__ import annotations

from typing import Any

from .option import TaskOption


class ItemHorizons(TaskOption):
    """A task whose items take different numbers of turns. Memory estimates use the number of turns
    of each item."""

    horizon: int

    def horizon_of(self, item: Any) -> int:
        """The maximum number of turns of an item's episodes, which must not exceed `horizon`. The
        default is `horizon`."""
        return self.horizon


def horizon_of(task: Any, item: Any) -> int:
    """The maximum number of turns of an item's episodes, for any task."""
    longest: int = task.horizon_of(item) if isinstance(task, ItemHorizons) else task.horizon
    return longest
