"""Parallel: agents act independently, without explicit communication."""

from __future__ import annotations

from typing import TypeVar

from colearn.contract import DecPOMDP

Item = TypeVar("Item")
State = TypeVar("State")


def parallel(task: DecPOMDP[Item, State]) -> DecPOMDP[Item, State]:
    """The task as it is: a Dec-POMDP is already played without communication."""
    return task
