"""Calls a task under test and copies the task's results. Every failure becomes an error with a
one-line message."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, TypeVar

from colearn.contract.checked_task import calling
from colearn.errors import TaskError, reason_of

from .fingerprint import fingerprint

Value = TypeVar("Value")

_REMEDIES = {
    "items": "give both splits",
    "reset": "every item must lead to a state",
    "step": "any text of an agent must lead to a reward",
}


def guarded(method: str, call: Callable[[Any], Value], argument: Any) -> Value:
    """Call a method of the task. Any exception becomes a TaskError of one line, as in a run
    (`calling`), since a task must accept any reply of an agent."""
    remedy = _REMEDIES.get(method, "every state that is reached must bear this call")
    with calling(f"task.{method}:", remedy=remedy):
        return call(argument)


def copied(value: Value, subject: str, remedy: str) -> Value:
    """Returns a copy of a value, made by pickling. Errors: TaskError if the value does not pickle
    or the copy differs."""
    try:
        copy: Value = pickle.loads(pickle.dumps(value))
    except Exception as error:
        raise TaskError(f"{subject} does not pickle ({reason_of(error)}); {remedy}") from error
    if fingerprint(copy) != fingerprint(value):
        raise TaskError(f"{subject} comes back from a pickle with other content; {remedy}")
    return copy
