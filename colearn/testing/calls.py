"""Calls of a task that is checked, and copies of what it gives: whatever fails is one line."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, TypeVar

from colearn.errors import TaskError, line_of, reason_of

from .fingerprint import fingerprint

Value = TypeVar("Value")

_REMEDIES = {
    "items": "give both splits",
    "reset": "every item must lead to a state",
    "step": "any text of an agent must lead to a reward",
}


def guarded(method: str, call: Callable[[Any], Value], argument: Any) -> Value:
    """Any exception of the task as one line: agents may say anything, a task must bear it."""
    try:
        return call(argument)
    except TaskError:
        raise
    except Exception as error:
        remedy = _REMEDIES.get(method, "every state that is reached must bear this call")
        raise TaskError(
            f"task.{method}: raised {type(error).__name__}: {reason_of(error)} "
            f"({line_of(error)}); {remedy}"
        ) from error


def copied(value: Value, what: str, remedy: str) -> Value:
    """A copy by way of a pickle, equal in content."""
    try:
        copy: Value = pickle.loads(pickle.dumps(value))
    except Exception as error:
        raise TaskError(f"{what} does not pickle ({reason_of(error)}); {remedy}") from error
    if fingerprint(copy) != fingerprint(value):
        raise TaskError(f"{what} comes back from a pickle with other content; {remedy}")
    return copy
