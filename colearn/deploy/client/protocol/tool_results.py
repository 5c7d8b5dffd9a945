"""Checks that the results of tools in a conversation match their calls.

As in OpenAI's API, each call is followed by one result, which names the call by its id, before
another user's or assistant's message. The results of adjacent calls may be in any order.
"""

from __future__ import annotations

from collections.abc import Sequence

from .errors import ServeError
from .parts import ToolCall
from .schema import Message


def check_results(messages: Sequence[Message]) -> None:
    """Errors: ServeError 400 for a result that is missing, repeated, or of no call before it, and
    for two calls of one id."""
    calls: dict[str, tuple[int, int, ToolCall]] = {}
    """The adjacent calls before a message: their message, number and content."""
    waiting: dict[str, tuple[int, int, ToolCall]] = {}
    """Those of the calls that have no result yet."""
    for number, message in enumerate(messages):
        if message.role == "tool":
            _check_result(number, message, calls, waiting)
            del waiting[str(message.tool_call_id)]
            continue
        if waiting and (message.role != "assistant" or len(waiting) < len(calls)):
            raise _missing(waiting)
        if message.calls and not waiting:
            calls = {}
        for place, call in enumerate(message.calls):
            if call.id in calls:
                raise _invalid(
                    f"messages.{number}.tool_calls.{place}.id",
                    f"call {place} of message {number} has the id of another call; give each its "
                    "own",
                )
            calls[call.id] = waiting[call.id] = (number, place, call)
    if waiting:
        raise _missing(waiting)


def _check_result(
    number: int,
    message: Message,
    calls: dict[str, tuple[int, int, ToolCall]],
    waiting: dict[str, tuple[int, int, ToolCall]],
) -> None:
    """Errors: ServeError 400 unless the result is of a call that waits for it."""
    field = f"messages.{number}.tool_call_id"
    if not calls:
        raise _invalid(
            f"messages.{number}.role",
            f"message {number} is a tool's, but no assistant message before it calls one",
        )
    if not message.tool_call_id:
        raise _invalid(field, f"message {number} is a tool's; give it the id of the call")
    if message.tool_call_id not in calls:
        raise _invalid(field, f"message {number} has the id of no call before it")
    if message.tool_call_id not in waiting:
        raise _invalid(field, f"the call of message {number} has its result already")
    function = waiting[message.tool_call_id][2].function
    if message.name not in (None, message.role, function.name):
        raise _invalid(
            f"messages.{number}.name", f"message {number} names another tool than its call does"
        )


def _missing(waiting: dict[str, tuple[int, int, ToolCall]]) -> ServeError:
    number, place, _ = next(iter(waiting.values()))
    return _invalid(
        f"messages.{number}.tool_calls",
        f"call {place} of message {number} has no result; send one for each call right behind it",
    )


def _invalid(field: str, line: str) -> ServeError:
    return ServeError(400, line, param=field, code="invalid_value")
