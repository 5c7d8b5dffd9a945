"""Notes to the user on stderr, printed by rank 0 alone."""

from __future__ import annotations

import os
import sys

PREFIX = "note: "


def speaks() -> bool:
    """Whether this process may print: a launcher such as torchrun numbers processes in RANK."""
    return os.environ.get("RANK", "0") == "0"


def note(text: str) -> None:
    """Print a note on stderr."""
    if speaks():
        print(PREFIX + text, file=sys.stderr, flush=True)
