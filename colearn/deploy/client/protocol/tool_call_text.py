"""Represents function tools as text: announces the tools to a model, and writes and parses the
model's calls.

A call has the form that workflows use: `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`.
Training and `colearn serve` both use this form instead of the tool-call form of the model's chat
template.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from colearn.text.json_value import read_json
from colearn.text.reasoning import answer_spans
from colearn.text.spans import Span, inside, joined, stripped

TOOL_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.S)
"""Pattern of a call. The closing tag may be missing, since some samplers use it as a stop
string."""

Call = tuple[str, Mapping[str, Any]]
"""A call's function name and arguments."""


def announce(functions: Sequence[Mapping[str, Any]]) -> str:
    """Returns the system text that announces the functions, in the order given."""
    lines = "\n".join(json.dumps(function, ensure_ascii=False) for function in functions)
    return (
        'To call a function, write <tool_call>{"name": NAME, "arguments": {...}}</tool_call>.\n'
        f"<tools>\n{lines}\n</tools>"
    )


def write_call(name: str, arguments: Mapping[str, Any]) -> str:
    """Writes a call, with sorted arguments."""
    call = json.dumps(
        {"name": name, "arguments": dict(sorted(arguments.items()))}, ensure_ascii=False
    )
    return f"<tool_call>{call}</tool_call>"


def write_answer(content: str, calls: Iterable[Call]) -> str:
    """Writes an assistant message as one text: its content, if there is any, then its calls."""
    return "\n".join((*((content,) if content else ()), *(write_call(*call) for call in calls)))


def write_response(text: str) -> str:
    """Writes a tool's result as a model observes it."""
    return f"<tool_response>{text}</tool_response>"


def read_calls(text: str, offered: Collection[str], *, several: bool) -> tuple[str, list[Call]]:
    """Returns the text outside the calls, and the calls of offered functions.

    Removes the reasoning, including any calls in the reasoning. A call remains text if the call
    cannot be parsed or if its function is not offered.
    """
    spans, calls = content_spans(text, offered, several=several)
    return joined(text, spans), calls


def content_spans(
    text: str, offered: Collection[str], *, several: bool
) -> tuple[list[Span], list[Call]]:
    """Returns the parts of the text that are the content, and the calls, as `read_calls` does."""
    answered = answer_spans(text)
    answer = joined(text, answered)
    calls: list[Call] = []
    outside: list[Span] = []
    end = 0
    for match in TOOL_CALL.finditer(answer):
        if calls and not several:
            break
        call = _parse_call(match[1])
        if call is None or call[0] not in offered:
            continue
        outside += inside(answered, end, match.start())
        end = match.end()
        calls.append(call)
    if not calls:
        return answered, calls
    if several:
        outside += inside(answered, end, len(answer))
    return stripped(text, outside), calls


def message(text: str, calls: Sequence[Call], reasoning: str = "") -> dict[str, Any]:
    """Returns an assistant message in OpenAI's form. Reasoning has the key of vLLM's answers."""
    answer: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    if reasoning:
        answer["reasoning"] = reasoning
    if calls:
        answer["content"] = text or None
        answer["tool_calls"] = [_tool_call(*call) for call in calls]
    return answer


def _tool_call(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {"id": f"call_{secrets.token_hex(12)}", "type": "function", "function": function}


def _parse_call(text: str) -> Call | None:
    try:
        fields = read_json(text, finite=True)
    except ValueError:
        return None
    match fields:
        case {"name": str(name), "arguments": dict(arguments)}:
            return name, arguments
    return None
