"""Checks that the results of tools in a conversation match their calls.

As in OpenAI's API, each call is followed by one result, which names the call by its id, before
another user's or assistant's message. The results of adjacent calls may be in any order.
"""

from __future__ import annotations

from collections.abc import Sequence

from .errors import ServeError
from .schema import Message

Waiting = dict[str, tuple[int, int, str]]
"""Calls without a result by their ids: number of the message, number of the call, function."""


def check_results(messages: Sequence[Message]) -> None:
    """Errors: ServeError 400 for a result that is missing, repeated, or of no call before it, and
    for two calls of one id."""
    waiting: Waiting = {}
    answered = False
    for number, message in enumerate(messages):
        if message.role == "tool":
            _take(number, message, waiting)
        elif waiting and (answered or message.role != "assistant"):
            raise _missing(waiting)
        answered = message.role == "tool"
        for place, call in enumerate(message.calls):
            if call.id in waiting:
                raise _invalid(
                    f"messages.{number}.tool_calls.{place}.id",
                    f"call {place} of message {number} has the id of another call; give each its "
                    "own",
                )
            waiting[call.id] = (number, place, call.function.name)
    if waiting:
        raise _missing(waiting)


def _take(number: int, message: Message, waiting: Waiting) -> None:
    """Removes the call of a result. Errors: ServeError 400 unless a call waits for the result."""
    if message.tool_call_id not in waiting:
        raise _invalid(
            f"messages.{number}.tool_call_id",
            f"message {number} is a tool's, but no call before it waits for a result with its id",
        )
    _, _, function = waiting.pop(message.tool_call_id)
    if message.name not in (None, message.role, function):
        raise _invalid(
            f"messages.{number}.name", f"message {number} names another tool than its call does"
        )


def _missing(waiting: Waiting) -> ServeError:
    number, place, _ = next(iter(waiting.values()))
    return _invalid(
        f"messages.{number}.tool_calls",
        f"call {place} of message {number} has no result; send one for each call right behind it",
    )


def _invalid(field: str, line: str) -> ServeError:
    return ServeError(400, line, param=field, code="invalid_value")
