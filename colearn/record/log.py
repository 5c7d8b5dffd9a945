"""What a run's process has printed, where a comparison started it."""

from __future__ import annotations

import re
from pathlib import Path

from .folder import RunFolder

_ERROR = re.compile(r"^(?:[\w.]*(?:Error|Exception|Interrupt)|error)\b", re.IGNORECASE)


def last_error(folder: RunFolder) -> str:
    """The line in which the run in `folder` last told of an error; "" where it told of none."""
    errors = [line for line in log_lines(folder.log) if _ERROR.match(line)]
    return (errors or [""])[-1][:500]


def log_lines(log: Path) -> list[str]:
    """Its lines that are not empty; none where there is no log."""
    if not log.is_file():
        return []
    lines = (line.strip() for line in log.read_text("utf-8", "replace").splitlines())
    return [line for line in lines if line]
