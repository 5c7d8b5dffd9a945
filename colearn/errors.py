"""Errors that a user can mend: one line that names the field and the remedy.

The command line prints them without a traceback and exits with code 2.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ColearnError(Exception):
    """Base of every error whose message alone tells the user what to do."""


class ConfigError(ColearnError):
    """A setting is missing, unknown, of the wrong type, or does not fit another one."""


class DataNotHere(ConfigError):
    """A task's data are elsewhere and cannot be reached from this machine."""


class TaskError(ColearnError):
    """A task broke its contract (not text, not finite, no items, ...)."""


class CheckpointError(ColearnError):
    """A checkpoint or a run folder cannot be read or must not be overwritten."""


class MissingExtra(ColearnError):
    """An optional dependency is not installed.

    Whoever reads it has colearn, so pip resolves the extra of what is installed, from any folder
    and without an index that has colearn itself.
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed: pip install 'colearn-llm[{extra}]'")


def nearest(name: str, known: Iterable[str], *, listed: str | None = None) -> str:
    """`did you mean 'x'?` for a misspelt name, or the known names: all, or the command that lists
    them where there are many."""
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"did you mean '{close[0]}'?"
    if listed is not None:
        return f"see {listed}"
    return "known: " + (", ".join(known) if known else "none")
