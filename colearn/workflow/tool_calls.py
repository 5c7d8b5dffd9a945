"""Parsing of a role's tool calls, and the text of their results."""

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
    """Returns name and arguments of the first tool call in an answer; None without a call.

    A call that cannot be parsed is a ToolError.
    """
    call = _CALL.search(text)
    if call is None:
        return None
    try:
        asked = read_json(call[1])
    except ValueError as error:
        return ToolError(f"{_FORM}; this {error}")
    match asked:
        case {"name": str(name), "arguments": dict(arguments)}:
            return name, arguments
    return ToolError(_FORM)


def told(result: Any) -> str:
    """Returns a result as the role's next observation."""
    return f"<tool_response>{plain(result)}</tool_response>"
