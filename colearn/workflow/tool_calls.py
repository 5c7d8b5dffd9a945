"""How a role calls a tool in the middle of its turn, and how it is shown what came of it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from .tool import ToolError, plain

DEEPEST = 32
"""Lists and objects within each other that a call may hold: what copies or checks one recurses."""
_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.S)
"""The closing mark may be missing: it is a stop string for some samplers."""


def find_call(text: str) -> tuple[str, Mapping[str, Any]] | ToolError | None:
    """The first tool call in what a role said: name and arguments; None where there is none.

    A call that cannot be read is a ToolError, whatever it holds.
    """
    found = _CALL.search(text)
    if found is None:
        return None
    try:
        asked = json.loads(found[1])
    except (ValueError, RecursionError):
        return ToolError("a tool call is JSON with a name and arguments")
    if not _shallow(asked, DEEPEST):
        return ToolError(f"a tool call holds at most {DEEPEST} lists and objects within each other")
    try:
        json.dumps(asked, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return ToolError("a tool call's texts are Unicode; it holds half of a surrogate pair")
    match asked:
        case {"name": str(name), "arguments": dict(arguments)}:
            return name, arguments
    return ToolError("a tool call is JSON with a name and arguments")


def told(result: Any) -> str:
    """A result as the role's next observation."""
    return f"<tool_response>{plain(result)}</tool_response>"


def _shallow(value: Any, deepest: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    inside = value.values() if isinstance(value, dict) else value
    return deepest > 0 and all(_shallow(one, deepest - 1) for one in inside)
