"""Describes in one line why a program failed, with the file and line number in the program's
code."""

from __future__ import annotations

import re
import traceback
from collections.abc import Sequence
from pathlib import Path

import colearn
from colearn.errors import printable, reason_of

_PLACE = re.compile(r' *File "(.+)", line (\d+)')
_LIBRARY = re.compile(r"<frozen|.*/(site|dist)-packages/|.*/lib(64)?/python3")
_COLEARN = str(Path(colearn.__file__).parent)


def raised(error: BaseException) -> str:
    """Returns the type and message of an exception, and the last traceback entry in the program's
    code."""
    trace = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) and error.filename:
        trace.append((error.filename, error.lineno))
    return f"{type(error).__name__}: {reason_of(error)}{_at(trace)}"


def last_words(stderr: bytes) -> str:
    """Returns the last line that a process wrote to stderr, and the last traceback entry in the
    program's code."""
    lines = [line for line in stderr.decode(errors="replace").split("\n") if line.strip()]
    if not lines:
        return "no message"
    trace = [(place[1], int(place[2][:9])) for line in lines if (place := _PLACE.match(line))]
    return printable(lines[-1]) + _at(trace)


def _at(trace: Sequence[tuple[str, int | None]]) -> str:
    """Returns ` (FILE, line N)` for the last traceback entry whose code is neither in a library nor
    in colearn; "" if there is none."""
    frames = [
        place
        for place in trace
        if not _LIBRARY.match(place[0]) and not place[0].startswith(_COLEARN)
    ]
    return f" ({frames[-1][0]}, line {frames[-1][1]})" if frames else ""
