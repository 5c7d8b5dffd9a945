"""Answer-parsing process, started as a script by `reader`. Each input line is JSON: a text, or a
pair to compare; the process writes one line for each."""

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
"""CPU seconds per answer; an answer that takes longer ends this process."""
MEMORY = 2**30
"""Memory limit of this process in bytes."""


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
    """Whether an answer equals the gold answer as an expression, interval, tuple, matrix or
    text."""
    return bool(verify(_parsed(gold), _parsed(answer), timeout_seconds=None))


def _parsed(answer: str) -> list[Any]:
    # math-verify's time limit needs signals and does not interrupt a long integer power
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
        # the limit counts whole seconds from the start of the process
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time()) + SECONDS, hard))
        request = json.loads(line)
        print(
            json.dumps(same(*request) if isinstance(request, list) else value(request)), flush=True
        )


if __name__ == "__main__":
    main()
