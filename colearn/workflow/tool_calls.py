"""How a role calls a tool in the middle of its turn, and how it is shown what came of it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from .tool import ToolError, plain

_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.S)
"""The closing mark may be missing: it is a stop string for some samplers."""


def find_call(text: str) -> tuple[str, Mapping[str, Any]] | ToolError | None:
    """The first tool call in what a role said: name and arguments; None where there is none."""
    found = _CALL.search(text)
    if found is None:
        return None
    try:
        asked = json.loads(found[1])
    except ValueError:
        return ToolError("a tool call is JSON with a name and arguments")
    match asked:
        case {"name": str(name), "arguments": dict(arguments)}:
            return name, arguments
    return ToolError("a tool call is JSON with a name and arguments")


def told(result: Any) -> str:
    """A result as the role's next observation."""
    return f"<tool_response>{plain(result)}</tool_response>"
