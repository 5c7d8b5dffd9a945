"""Parallel play: agents act independently, without explicit communication."""

from __future__ import annotations

from typing import Any

from colearn.contract import DecPOMDP

from .wrapper import Wraps


class NoCommunication(Wraps):
    """Returns the task unchanged: a Dec-POMDP is already played without communication."""

    @classmethod
    def wrap(cls, task: DecPOMDP[Any, Any], **settings: Any) -> DecPOMDP[Any, Any]:
        """The task itself."""
        return task
