"""What a run found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ErrorKind = Literal[
    "syntax",
    "import",
    "exception",
    "assertion",
    "timeout",
    "memory",
    "output",
    "crash",
    "forbidden",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Of one program on its tests."""

    passed: tuple[bool, ...]
    """One per test, in order."""
    error: ErrorKind | None
    """Why the first failed test failed; None if all passed. A label, which the program can choose
    among those of failure; `passed` is what counts."""
    message: str
    """One line about it; '' if all passed."""
    seconds: float
    """Wall-clock time of the run."""

    @property
    def all_passed(self) -> bool:
        return all(self.passed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Of one program run as a script."""

    text: str
    """Its standard output, as far as it came; bytes that are no UTF-8 are replaced."""
    error: ErrorKind | None
    """None if it ended with exit status 0."""
    message: str
    """One line about the error, or ''."""
    seconds: float
    """Wall-clock time of the run."""


def one_line(text: str) -> str:
    """At most 200 characters without line breaks or other control characters."""
    line = " ".join(text.split())
    return "".join(c if c.isprintable() else "?" for c in line)[:200]
