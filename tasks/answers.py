"""Parses agents' answers: final answers after a mark, a block of code, plain values.

Reasoning is not part of an answer. The parsers never guess: they return None for an ambiguous
answer, which then counts as having no valid format.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from colearn.text.reasoning import without_reasoning

MARK = "####"
"""The mark at the start of a line with a final answer."""

_BLOCK = re.compile(r"^```python[ \t]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)
LONGEST = 20_000
"""Maximum number of characters of a value; Python's parser is slow on longer ones."""


def final_answer(text: str) -> str | None:
    """The text after the last `####` at the start of a line; None if it is missing or empty."""
    _, mark, rest = ("\n" + without_reasoning(text)).rpartition("\n" + MARK)
    if not mark or rest.startswith("#"):
        return None
    return rest.strip() or None


def code_block(text: str) -> str | None:
    """Returns the only fenced Python block; None if there is no block or more than one."""
    text = without_reasoning(text).replace("\r\n", "\n")
    if text.count("```") != 2:
        return None
    match = _BLOCK.search(text)
    return match.group(1) if match and match.group(1).strip() else None


def plain_value(text: str) -> Any:
    """Parses a list, number or string in Python or JSON syntax; None for anything else."""
    if len(text) > LONGEST:
        return None
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
