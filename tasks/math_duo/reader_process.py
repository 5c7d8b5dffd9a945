"""Answer-parsing process: a text, or a pair to compare, as one JSON line in, and one line out;
started as a script by `reader`."""

from __future__ import annotations

import json
import logging
import math
import resource
import sys
import time
from typing import Any

from math_verify import parse, verify

SECONDS = 2
"""Of processor time for an answer; what takes longer ends this process."""
MEMORY = 2**30
"""Bytes of this process."""


def value(answer: str) -> float | None:
    """Value of an answer, LaTeX included; None if it is not a finite real number."""
    parsed = _parsed(answer)
    expression = parsed[0] if parsed else None
    if expression is None:
        return None
    if getattr(expression, "rel_op", None) == "==" and expression.lhs.is_Symbol:
        expression = expression.rhs  # x = 5
    if not getattr(expression, "is_number", False):
        return None
    try:
        real = float(expression.doit().evalf())
    except (TypeError, ValueError, OverflowError, MemoryError, RecursionError):
        return None
    return real if math.isfinite(real) else None


def same(gold: str, answer: str) -> bool:
    """Whether an answer is the gold one: an equal expression, interval, tuple, matrix or text."""
    return bool(verify(_parsed(gold), _parsed(answer), timeout_seconds=None))


def _parsed(answer: str) -> list[Any]:
    # its own time limit needs signals, and leaves a long whole-number power alone
    parsed: list[Any] = parse("\\boxed{" + answer.strip().strip("$") + "}", parsing_timeout=None)
    return parsed


def main() -> None:
    logging.disable(logging.CRITICAL)  # answers that cannot be read are usual
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        # counted in whole seconds from the start of the process
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time()) + SECONDS, hard))
        asked = json.loads(line)
        print(json.dumps(same(*asked) if isinstance(asked, list) else value(asked)), flush=True)


if __name__ == "__main__":
    main()
