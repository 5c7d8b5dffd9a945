"""Answer-parsing process: one JSON line in, one out; started as a script by `reader`."""

from __future__ import annotations

import json
import logging
import math
import resource
import sys
import time

from math_verify import parse

SECONDS = 2
"""Of processor time for an answer; what takes longer ends this process."""
MEMORY = 2**30
"""Bytes of this process."""


def value(answer: str) -> float | None:
    """Value of an answer, LaTeX included; None if it is not a finite real number."""
    # its own time limit needs signals, and leaves a long whole-number power alone
    parsed = parse("\\boxed{" + answer.strip().strip("$") + "}", parsing_timeout=None)
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
        print(json.dumps(value(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
