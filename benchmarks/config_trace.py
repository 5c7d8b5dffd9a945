"""A config's way through the code: `python benchmarks/config_trace.py [--each]`.

Runs `colearn train quickstart` up to its first update under a profiler, and counts the calls of
colearn's functions that receive a config, or a section of one, as an argument. Consecutive calls in
one file are one stop; a return is a stop in a file that was left before.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

from pydantic import BaseModel

import colearn
import colearn.experiment.loop  # imports are no calls
from colearn.cli.train import train

PACKAGE = Path(colearn.__file__).parent


class FirstUpdate(BaseException):
    """Raised where the first update begins; no handler of errors catches it."""


def traced_calls() -> list[tuple[str, str]]:
    """(file, function) of each call that receives a config, in order."""
    calls: list[tuple[str, str]] = []

    def profile(frame: Any, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(str(PACKAGE)):
            return
        if code.co_qualname == "Updater.update":
            sys.setprofile(None)
            raise FirstUpdate
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if any(isinstance(frame.f_locals.get(n), BaseModel) for n in names if n != "self"):
            file = Path(code.co_filename).relative_to(PACKAGE)
            calls.append((str(file), code.co_qualname))

    with tempfile.TemporaryDirectory() as folder:
        sys.setprofile(profile)
        try:
            train("quickstart", out=Path(folder) / "run", sets=["run.device=cpu"])
        except FirstUpdate:
            pass
        finally:
            sys.setprofile(None)
    return calls


def stops_of(calls: Iterable[tuple[str, str]]) -> list[str]:
    """The files on the way, without consecutive repetitions."""
    return [file for file, _ in groupby(calls, key=lambda call: call[0])]


if __name__ == "__main__":
    calls = traced_calls()
    stops = stops_of(calls)
    if "--each" in sys.argv:
        for file, function in calls:
            print(f"{file}: {function}")
    files = len(set(stops))
    print(f"{len(calls)} calls, {len(stops)} stops in {files} files, {len(stops) - files} returns")
