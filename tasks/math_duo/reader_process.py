"""The process in which answers are read, one JSON line each way; run as a script by `reader`."""

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
    """The finite real number that an answer comes to, also in LaTeX."""
    # its own time limit needs signals, and leaves a long whole-number power alone
    parsed = parse("\\boxed{" + answer.strip().strip("$") + "}", parsing_timeout=None)
    found = parsed[0] if parsed else None
    if found is None or not getattr(found, "is_number", False):
        return None
    try:
        real = float(found.doit().evalf())
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
