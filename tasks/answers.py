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
_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")
_DIGIT = re.compile(r"\d")
LONGEST = 20_000
"""Maximum number of characters of a value; Python's parser is slow on longer ones."""


def final_answer(text: str) -> str | None:
    """The text after the last `####` at the start of a line; None if it is missing or empty."""
    _, mark, rest = ("\n" + without_reasoning(text)).rpartition("\n" + MARK)
    if not mark or rest.startswith("#"):
        return None
    return rest.strip() or None


def marked_answer(text: str) -> str | None:
    """The last final answer of a text: the rest of a line after `####` (or the next line, if that
    rest is empty), or the content of a LaTeX `\\boxed{...}`. Text after the answer is ignored; None
    if there is no answer, or if the next line has another number.
    """
    text = without_reasoning(text)
    start = ("\n" + text).rfind("\n" + MARK)
    if start >= 0 and not text[start + len(MARK) :].startswith("#"):
        first, *more = text[start + len(MARK) :].lstrip().splitlines() or [""]
        if more and _DIGIT.search(more[0]):
            return None
        return _last_box(text[start:]) or first.strip() or None
    return _last_box(text)


def _last_box(text: str) -> str | None:
    """The content of the last `\\boxed{...}` or `\\fbox{...}` whose braces are closed."""
    for match in reversed(list(_BOX.finditer(text))):
        depth = 1
        for place in range(match.end(), len(text)):
            depth += (text[place] == "{") - (text[place] == "}")
            if depth == 0:
                return text[match.end() : place].strip() or None
    return None


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
