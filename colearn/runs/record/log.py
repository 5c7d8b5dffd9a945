"""Reads the log of a run that was started by a comparison."""

from __future__ import annotations

import re
from pathlib import Path

from .folder import RunFolder

_ERROR = re.compile(r"^(?:[\w.]*(?:Error|Exception|Interrupt)|error)\b", re.IGNORECASE)


def last_error(folder: RunFolder) -> str:
    """The last error line in the log of the run in `folder`; "" if there is none."""
    errors = [line for line in log_lines(folder.log) if _ERROR.match(line)]
    return (errors or [""])[-1][:500]


def log_size(log: Path) -> int:
    """Size of the log in bytes; 0 without a log."""
    return log.stat().st_size if log.is_file() else 0


def log_lines(log: Path) -> list[str]:
    """Returns the non-empty lines of the log, or no lines if there is no log."""
    if not log.is_file():
        return []
    lines = (line.strip() for line in log.read_text("utf-8", "replace").splitlines())
    return [line for line in lines if line]
