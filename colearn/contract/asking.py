"""Error reporting for task calls: each error names the task, the method and the item."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from colearn.errors import ColearnError, TaskError

from .task import DecPOMDP

Asked = DecPOMDP[Any, Any] | type[DecPOMDP[Any, Any]]
"""A task, or its class where it is made."""

_LONGEST_ITEM, _LONGEST_REASON = 80, 200
_INSTALLED = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib"))


@contextmanager
def asking(task: Asked, method: str, item: str | None = None) -> Iterator[None]:
    """Around a call of `task.METHOD` about an `item` as `item_name` gives it.

    Errors: TaskError for whatever the task raises, a SystemExit included, with its line, and for a
    broken promise, with task and item; other ColearnErrors pass.
    """
    try:
        with placed(task, item):
            yield
    except ColearnError:
        raise
    except (Exception, SystemExit) as error:
        raise TaskError(
            f"task.{method}: raised {type(error).__name__}: {_reason(error)} ({line_of(error)}); "
            f"mend it there; {_place(task, item)}"
        ) from error


@contextmanager
def placed(task: Asked, item: str | None = None) -> Iterator[None]:
    """Where what a task gave is used: a TaskError is told with task and item, all else passes."""
    try:
        yield
    except TaskError as error:
        raise TaskError(f"{error}; {_place(task, item)}") from error


def item_name(item: Any) -> str:
    """An item in a few words."""
    try:
        name = _printable(str(item))
    except Exception as error:  # noqa: BLE001 - a name is only asked for to tell of a mistake
        name = f"{type(item).__name__} whose str() raises {type(error).__name__}"
    return name if len(name) <= _LONGEST_ITEM else f"{name[:_LONGEST_ITEM]} ..."


def _place(task: Asked, item: str | None) -> str:
    name = (task if isinstance(task, type) else type(task)).__name__
    return f"in {name}" + ("" if item is None else f", item '{item}'")


def _reason(error: BaseException) -> str:
    return _printable(str(error))[:_LONGEST_REASON] or "nothing said"


def line_of(error: BaseException) -> str:
    """Where it was raised: the last line of its traceback that is in no library, the last one where
    all are."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames[1:] if not frame.filename.startswith(_INSTALLED)]
    at = (own or frames)[-1]
    return f"{at.filename}, line {at.lineno}"


def _printable(text: str) -> str:
    """One line that a terminal shows as it is."""
    return "".join(sign if sign.isprintable() else "?" for sign in " ".join(text.split()))
