"""How a role calls a tool in the middle of its turn, and how it is shown what came of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from colearn.json_text import read_json

from .tool import ToolError, plain

_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.S)
"""The closing mark may be missing: it is a stop string for some samplers."""
_FORM = "a tool call is JSON with a name and arguments"


def find_call(text: str) -> tuple[str, Mapping[str, Any]] | ToolError | None:
    """The first tool call in what a role said: name and arguments; None where there is none.

    A call that cannot be read is a ToolError, whatever it holds.
    """
    found = _CALL.search(text)
    if found is None:
        return None
    try:
        asked = read_json(found[1])
    except ValueError as error:
        return ToolError(f"{_FORM}; this {error}")
    match asked:
        case {"name": str(name), "arguments": dict(arguments)}:
            return name, arguments
    return ToolError(_FORM)


def told(result: Any) -> str:
    """A result as the role's next observation."""
    return f"<tool_response>{plain(result)}</tool_response>"
