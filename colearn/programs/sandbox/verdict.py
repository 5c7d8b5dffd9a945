"""Results of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from colearn.errors import printable

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
    """Result of one program on its tests."""

    passed: tuple[bool, ...]
    """Whether each test passed, in order."""
    error: ErrorKind | None
    """Failure kind of the first failed test; None if all passed. The program can influence which
    failure kind is reported, but not `passed`."""
    errors: tuple[ErrorKind | None, ...]
    """Failure kind of each test, in order; None for a test that passed or was not run."""
    message: str
    """One line about the error; '' if all passed."""

    @property
    def all_passed(self) -> bool:
        return all(self.passed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Result of one program that ran as a script."""

    text: str
    """Standard output up to the end of the run; bytes that are not UTF-8 are replaced."""
    error: ErrorKind | None
    """None if the exit status is 0."""
    message: str
    """One line about the error; '' if there is none."""


def one_line(text: str) -> str:
    """The first 200 characters of a text, without line breaks or other control characters."""
    return printable(text)[:200]
