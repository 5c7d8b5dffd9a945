"""Function tools in text: how they are announced, and how calls are written and read.

The form is the one that workflows use: `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`.
It is the same in training and behind `colearn serve`, whatever a model's own template would write.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from colearn.json_text import read_json

_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.S)
"""The closing mark may be missing: it is a stop string for some samplers."""

Call = tuple[str, Mapping[str, Any]]
"""Name and arguments."""


def announce(functions: Sequence[Mapping[str, Any]]) -> str:
    """The system text that names the functions, in the order given."""
    lines = "\n".join(json.dumps(function, ensure_ascii=False) for function in functions)
    return (
        'To call a function, write <tool_call>{"name": NAME, "arguments": {...}}</tool_call>.\n'
        f"<tools>\n{lines}\n</tools>"
    )


def write_call(name: str, arguments: Mapping[str, Any]) -> str:
    """A call, the same for the same arguments in any order."""
    asked = json.dumps(
        {"name": name, "arguments": dict(sorted(arguments.items()))}, ensure_ascii=False
    )
    return f"<tool_call>{asked}</tool_call>"


def write_response(text: str) -> str:
    """A tool's result as a model is shown it."""
    return f"<tool_response>{text}</tool_response>"


def read_calls(text: str, offered: Collection[str], *, several: bool) -> tuple[str, list[Call]]:
    """The text outside of the calls, and the calls of functions that were offered.

    A call that cannot be read, or of a function that is not offered, stays text.
    """
    calls: list[Call] = []
    outside: list[str] = []
    end = 0
    for found in _CALL.finditer(text):
        if calls and not several:
            break
        call = _read(found[1])
        if call is None or call[0] not in offered:
            continue
        outside.append(text[end : found.start()])
        end = found.end()
        calls.append(call)
    if not (calls and not several):
        outside.append(text[end:])
    return "".join(outside).strip() if calls else text, calls


def message(text: str, calls: Sequence[Call]) -> dict[str, Any]:
    """An assistant's message as clients read it."""
    found: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    if calls:
        found["content"] = text or None
        found["tool_calls"] = [_told(*call) for call in calls]
    return found


def _told(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    asked = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {"id": f"call_{secrets.token_hex(12)}", "type": "function", "function": asked}


def _read(text: str) -> Call | None:
    try:
        asked = read_json(text)
    except ValueError:
        return None
    match asked:
        case {"name": str(name), "arguments": dict(arguments)}:
            return name, arguments
    return None
