"""Reading what agents answer: final answers after a mark, a block of code, plain values.

Every reader gives None for what it cannot read without guessing: the answer then has no format.
"""

from __future__ import annotations

import ast
import re
from typing import Any

MARK = "####"
"""Opens the line of a final answer."""

_BLOCK = re.compile(r"^```python[ \t]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)
_LONGEST = 20_000
"""Characters of a value that are read; Python's parser is slow on more."""


def final_answer(text: str) -> str | None:
    """What follows the last line that begins with `####`, that line's rest included."""
    _, found, rest = ("\n" + text).rpartition("\n" + MARK)
    if not found or rest.startswith("#"):
        return None
    return rest.strip() or None


def code_block(text: str) -> str | None:
    """The one fenced block of Python; None where there is none, or more than one."""
    if text.count("```") != 2:
        return None
    found = _BLOCK.search(text)
    return found.group(1) if found and found.group(1).strip() else None


def plain_value(text: str) -> Any:
    """A list, number or string as Python or JSON writes it; None for anything else."""
    if len(text) > _LONGEST:
        return None
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
