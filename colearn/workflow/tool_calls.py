"""Tool calls of a role: parses them from its answer, runs them and returns the results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from colearn.client.protocol.tool_call_text import TOOL_CALL, write_response
from colearn.text.json_value import read_json
from colearn.text.reasoning import without_reasoning

from .replay import Replay
from .tool import LONGEST_LINE, Tool, ToolError, plain

_FORM = "a tool call is JSON with a name and arguments"


def find_call(text: str) -> tuple[str, Mapping[str, Any]] | ToolError | None:
    """Returns name and arguments of the first tool call in an answer; None without a call.

    Calls inside reasoning do not count. For a call that cannot be parsed, returns a ToolError.
    """
    call = TOOL_CALL.search(without_reasoning(text))
    if call is None:
        return None
    try:
        asked = read_json(call[1], finite=True)
    except ValueError as error:
        return ToolError(f"{_FORM}; this {error}")
    match asked:
        case {"name": str(name), "arguments": dict(arguments)}:
            return name, arguments
    return ToolError(_FORM)


async def use_as_asked(
    recorder: Replay,
    wanted: tuple[str, Mapping[str, Any]] | ToolError,
    offered: Mapping[str, Tool],
) -> str:
    """Runs the tool that a role calls. Returns the role's next observation: the result, or the
    error in the call."""
    if isinstance(wanted, ToolError):
        return write_response(wanted)
    name, arguments = wanted
    if name not in offered:
        said = " ".join(name.split())[:LONGEST_LINE]
        return write_response(f"no tool '{said}'; there is {', '.join(offered)}")
    result = await recorder.use(name, offered[name].bind((), arguments))
    return write_response(plain(result))
