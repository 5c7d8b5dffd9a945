"""Reads one chat message of a data row: its role and its text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .media import media_problem

_LEFT_OUT = (
    "name",
    *("reasoning_content", "reasoning", "thinking"),
    *("tool_calls", "function_call"),
)
"""Fields that raise an error, because their content would be lost."""


def read_message(message: Any, holder: str) -> tuple[str, str]:
    """Returns role and text. `holder` names what keeps these two alone, for example prompts.

    Errors: ValueError with a message to append to the name of the chat message.
    """
    if (problem := media_problem({"content": message})) is not None:
        raise ValueError(problem)
    role = message.get("role") if isinstance(message, Mapping) else None
    content = message.get("content") if isinstance(message, Mapping) else None
    if role not in ("system", "user", "assistant") or not isinstance(content, str):
        raise ValueError("has no role of system, user, assistant with a text as content; fix it")
    for name in _LEFT_OUT:
        if message.get(name):
            raise ValueError(f"has {name}, which {holder} do not hold; write it into content")
    return role, content
