"""`colearn ...` in this process, and what is wrong with how it answers a mistake."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest
from tiny import register

from colearn.entry.cli import main

__all__ = ["colearn"]
"""The fixture, for `import *`."""


class Ended(NamedTuple):
    """The exit code, and what was written on both streams."""

    code: int
    out: str
    err: str


Command = Callable[..., Ended]


@pytest.fixture
def colearn(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run `colearn ARGUMENTS`, which knows the task `notes`."""
    register(monkeypatch, notes="tiny:Notes")

    def run(*arguments: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["colearn", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        return Ended(int(stop.value.code or 0), *capsys.readouterr())

    return run


def complaint(command: Command, *arguments: object, named: str = "") -> str | None:
    """What is wrong with how a mistake was answered: it is one short line that says `named`, and
    exit code 2. None if nothing is."""
    try:
        code, _, err = command(*arguments)
    except Exception as error:  # noqa: BLE001 - a traceback is what is looked for
        return f"{type(error).__name__}: {str(error)[:200]}"
    told = [line for line in err.splitlines() if not line.startswith(("note: ", "warning: "))]
    if code != 2:
        return f"exit {code}: {err[-300:]!r}"
    if len(told) != 1 or not told[0].startswith("error: ") or not err.endswith("\n"):
        return f"not one line: {err[:300]!r}"
    if len(told[0]) >= 1000 or named not in told[0]:
        return f"{len(told[0])} characters, or does not name {named}: {told[0][:300]!r}"
    return None
