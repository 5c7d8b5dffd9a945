"""For authors of tasks: hold a task to its contract before training on it."""

from .check_task import check_task

__all__ = ["check_task"]
