"""Contract checks for task authors."""

from .check_task import check_task

__all__ = ["check_task"]
