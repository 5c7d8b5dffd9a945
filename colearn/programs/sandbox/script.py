"""Runs one program as a plain script in a given mechanism."""

from __future__ import annotations

import time

from ._bundle import bundle
from ._plain import framed
from .confine import Mechanism, start
from .limits import Limits
from .supervise import Watched, lost_by, supervise
from .verdict import ErrorKind, Output, one_line

LONGEST_PROGRAM = 4 * 1024 * 1024
"""Maximum size of the source in bytes."""
TOO_LONG = f"source of more than {LONGEST_PROGRAM} bytes"

_KINDS: dict[str, ErrorKind] = {
    "SyntaxError": "syntax",
    "IndentationError": "syntax",
    "TabError": "syntax",
    "ImportError": "import",
    "ModuleNotFoundError": "import",
    "MemoryError": "memory",
    "PermissionError": "forbidden",
    "AssertionError": "assertion",
}


def is_too_long(program: str) -> bool:
    return len(program.encode("utf-8", "surrogatepass")) > LONGEST_PROGRAM


def run_script(
    program: str, stdin: str, limits: Limits, mechanism: Mechanism, *, commands: bool = False
) -> Output:
    """Run the program; returns its output and error."""
    began = time.monotonic()
    if is_too_long(program):
        return Output(text="", error="syntax", message=TOO_LONG)
    feed = bundle("script") + framed(program) + stdin.encode("utf-8", "surrogatepass")
    started = start("script", mechanism, limits, commands=commands)
    watched = Watched(started, memoryview(feed), limits.output_kb * 1024)
    supervise([watched], watched, began + limits.seconds)
    error, message = _error(watched)
    return Output(
        text=watched.output.decode("utf-8", "replace"),
        error=error,
        message=one_line(message),
    )


def _error(watched: Watched) -> tuple[ErrorKind | None, str]:
    code = watched.process.returncode
    if watched.ended is None and code == 0:
        return None, ""
    if watched.ended is None and code == 1:
        # an uncaught exception: the last line of the traceback names it
        last = watched.errors.decode("utf-8", "replace").strip().rpartition("\n")[2]
        if last:
            name, _, text = last.partition(": ")
            if text.startswith("[Errno 30]"):  # a read-only file system
                return "forbidden", last
            return _KINDS.get(name, "exception"), last
    return lost_by(watched)
