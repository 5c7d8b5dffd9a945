"""A role's turn in a workflow: its prompt, the tools that it calls, and its answer.

A role is a name in `Workflow.agents`. A run calls a role through `Team.ask`. `Replay` takes the
answer from the record or waits for the trained agent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from colearn.contract.types import Sources
from colearn.deploy.client.protocol.tool_call_text import TOOL_CALL, write_response
from colearn.text.json_value import read_json
from colearn.text.reasoning import without_reasoning

from .replay import Replay
from .tool import LONGEST_LINE, Tool, ToolError, plain

_FORM = "a tool call is JSON with a name and arguments"


class Answer(str):
    """A role's answer: a string with the actions that produced it."""

    actions: Sources
    """(turn, role) of each action; several if the role used tools."""
    call: int
    """Number of the role's call, or of its last call if the role used tools."""

    @classmethod
    def of(cls, text: str, actions: Sources, call: int) -> Answer:
        """Builds an answer."""
        answer = cls(text)
        answer.actions, answer.call = actions, call
        return answer


async def play_turn(
    replay: Replay,
    role: str,
    prompt: str,
    *,
    after: Sequence[int] | None,
    fresh: bool,
    system: str | None,
    offered: Mapping[str, Tool],
    tool_calls: int,
) -> Answer:
    """Asks the role until it answers without a tool call, at most 1 + `tool_calls` times."""
    actions: list[tuple[int, str]] = []
    for attempt in range(tool_calls + 1 if offered else 1):
        opens = fresh and attempt == 0
        event = await replay.call(
            role, prompt, after, fresh=opens, system=system if opens else None
        )
        assert event.turn is not None, "roles speak in turns"
        actions.append((event.turn, role))
        tool_call = find_call(event.result) if attempt < tool_calls and offered else None
        if tool_call is None:
            break
        prompt, after = await use_as_asked(replay, tool_call, offered), None
    return Answer.of(event.result, tuple(actions), event.call.number)


def find_call(text: str) -> tuple[str, Mapping[str, Any]] | ToolError | None:
    """Returns name and arguments of the first tool call in an answer; None without a call.

    Calls inside reasoning do not count. For a call that cannot be parsed, returns a ToolError.
    """
    call = TOOL_CALL.search(without_reasoning(text))
    if call is None:
        return None
    try:
        fields = read_json(call[1], finite=True)
    except ValueError as error:
        return ToolError(f"{_FORM}; this {error}")
    match fields:
        case {"name": str(name), "arguments": dict(arguments)}:
            return name, arguments
    return ToolError(_FORM)


async def use_as_asked(
    replay: Replay,
    tool_call: tuple[str, Mapping[str, Any]] | ToolError,
    offered: Mapping[str, Tool],
) -> str:
    """Runs the tool that a role calls. Returns the role's next observation: the result, or the
    error in the call."""
    if isinstance(tool_call, ToolError):
        return write_response(tool_call)
    name, arguments = tool_call
    if name not in offered:
        short_name = " ".join(name.split())[:LONGEST_LINE]
        return write_response(f"no tool '{short_name}'; there is {', '.join(offered)}")
    result = await replay.use(name, offered[name].bind((), arguments))
    return write_response(plain(result))
