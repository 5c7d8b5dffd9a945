"""A role's turn in a workflow: its prompt, the tools that it calls, and its answer.

A role is a name in `Workflow.agents`. A run calls a role through `Team.ask`. `Replay` takes the
answer from the record or waits for the trained agent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from colearn.types import Sources

from .replay import Replay
from .tool import Tool
from .tool_calls import find_call, use_as_asked


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
    recorder: Replay,
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
    spoken: list[tuple[int, str]] = []
    for attempt in range(tool_calls + 1 if offered else 1):
        opens = fresh and attempt == 0
        event = await recorder.call(
            role, prompt, after, fresh=opens, system=system if opens else None
        )
        assert event.turn is not None, "roles speak in turns"
        spoken.append((event.turn, role))
        wanted = find_call(event.result) if attempt < tool_calls and offered else None
        if wanted is None:
            break
        prompt, after = await use_as_asked(recorder, wanted, offered), None
    return Answer.of(event.result, tuple(spoken), event.call.number)
