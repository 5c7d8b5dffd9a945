"""Errors of a task: each names the task, the method and the item."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from colearn.errors import ColearnError, TaskError, line_of, printable, reason_of

from .global_switches import guarded
from .task import DecPOMDP

TaskOrClass = DecPOMDP[Any, Any] | type[DecPOMDP[Any, Any]]
"""A task or, while the task is being constructed, its class."""

_LONGEST_ITEM = 80


@contextmanager
def asking(
    task: TaskOrClass, method: str, item: str | None = None, *, split: str | None = None
) -> Iterator[None]:
    """Context for a call of `task.METHOD`; `item` is the result of `item_name`, and `split` the
    split whose items are read.

    Errors: as for `calling`, and TaskError if the task breaks its contract. The error names the
    task, and the item or the split.
    """
    with placed(task, item, split=split), calling(f"task.{method}:"):
        yield


@contextmanager
def calling(who: str) -> Iterator[None]:
    """Context for a call of a user's code. Global switches that the code changes are put back
    (`guarded`).

    Errors: TaskError, which begins with `who` and names the source line, for any exception,
    including SystemExit and asyncio's CancelledError, which would end a branch as if it had been
    cancelled. ColearnErrors and KeyboardInterrupt propagate unchanged.
    """
    try:
        with guarded(who):
            yield
    except (ColearnError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise TaskError(
            f"{who} raised {type(error).__name__}: {reason_of(error)} ({line_of(error)}); fix it "
            "there"
        ) from error


@contextmanager
def placed(
    task: TaskOrClass, item: str | None = None, *, split: str | None = None
) -> Iterator[None]:
    """Context for the use of a task's result: adds the task, and the item or the split, to a
    TaskError. Other exceptions propagate unchanged."""
    try:
        yield
    except TaskError as error:
        place = f"in {(task if isinstance(task, type) else type(task)).__name__}"
        for kind, name in (("item", item), ("split", split)):
            if name is not None:
                place += f", {kind} '{name}'"
        raise TaskError(f"{error}; {place}") from error


def item_name(item: Any) -> str:
    """A short name of an item for errors."""
    try:
        name = printable(str(item))
    except Exception as error:  # noqa: BLE001 - the name is used only in an error message
        name = f"{type(item).__name__} whose str() raises {type(error).__name__}"
    return name if len(name) <= _LONGEST_ITEM else f"{name[:_LONGEST_ITEM]} ..."


def check_length(agent: str, tokens: int, positions: int | None) -> None:
    """Errors: TaskError if an observation of `tokens` tokens leaves no room for an answer within
    the maximum length of the agent's model."""
    if positions is not None and tokens >= positions:
        raise TaskError(
            f"task.observe: agent '{agent}' was given {tokens} tokens, and its model reads "
            f"{positions}; show less, or name a model with a longer context"
        )
