"""Parsing of a role's tool calls, and the text of their results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from colearn.json_text import read_json
from colearn.wire.tools import TOOL_CALL, write_response

from .tool import ToolError, plain

_FORM = "a tool call is JSON with a name and arguments"


def find_call(text: str) -> tuple[str, Mapping[str, Any]] | ToolError | None:
    """Returns name and arguments of the first tool call in an answer; None without a call.

    A call that cannot be parsed is a ToolError.
    """
    call = TOOL_CALL.search(text)
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
    return write_response(plain(result))
