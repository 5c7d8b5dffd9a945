"""Running a program against tests, or as a script."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from colearn.errors import ConfigError

from ._bundle import bundle
from ._plain import framed, frames
from .limits import Limits
from .mechanism import choose_mechanism
from .script import TOO_LONG, is_too_long, run_script
from .start import Mechanism, start
from .statements import Statements, take_apart
from .supervise import Watched, bury, lost_by, supervise
from .verdict import ErrorKind, Output, Verdict, one_line

_MOST_LOSSES = 3
"""Tests that may each cost the program its process before the others are given up."""
_MOST_REPORTS = 64 * 1024 * 1024


@dataclass(slots=True)
class _Findings:
    """What is known of the tests so far."""

    passed: list[bool]
    errors: dict[int, tuple[ErrorKind, str]] = field(default_factory=dict)
    """By test, of those that failed."""
    over: bool = False
    """Nothing more can be found."""
    next: int = 0
    """The test to go on with."""

    def fail_rest(self, kind: ErrorKind, message: str) -> None:
        self.over = True
        if self.next < len(self.passed):
            self.errors.setdefault(self.next, (kind, message))


def run_tests(
    program: str,
    entry_point: str,
    tests: str | Sequence[str],
    *,
    prompt: str = "",
    functions: Sequence[str] = (),
    limits: Limits | None = None,
    mechanism: Mechanism | Literal["auto"] = "auto",
) -> Verdict:
    """Run trusted tests on a program that nobody trusts; each bare assert counts on its own.

    program: Python source; the tests call its function `entry_point`, in a process of its own.
    tests: one text, in which each statement with an `assert` is a test (its asserts may be the body
        of `check(candidate)`), or one text per test. They find the entry point under its own name
        and as `candidate`.
    prompt: trusted source that the tests may use, like HumanEval's prompts, which hold helpers.
    functions: other functions of the program that the tests may call. Give no name that a test
        relies on: the program decides what they return.

    A test passes if it ran to its end and the program was alive then. After a failed bare assert
    the next tests are run. After any other failed statement, test or preparation, the rest fails,
    as plain Python would stop there. After a bare assert that cost the program its process the next
    tests get a fresh one, at most three times; the preparations and all tests before that are more
    than bare asserts are run again in it.

    Errors: ConfigError if the tests do not parse or are none, a name is no identifier, the prompt
    does not parse, or no sandbox works here.
    """
    limits = limits or Limits()
    chosen = choose_mechanism(mechanism)
    for name in (entry_point, *functions):
        if not name.isidentifier():
            raise ConfigError(f"entry_point: {name!r} is no name of a function; give an identifier")
    _check_prompt(prompt)
    statements = take_apart(tests, entry_point, functions=functions, prompt=prompt)
    began = time.monotonic()
    work = {
        "prompt": prompt,
        "entry_point": entry_point,
        "entry_names": list(statements.names),
        "functions": list(functions),
        "statements": [list(source) for source in statements.sources],
        "bare": list(statements.bare),
        "call_seconds": limits.call_seconds,
    }
    found = _Findings([False] * statements.tests)
    if is_too_long(program):
        found.fail_rest("syntax", TOO_LONG)
    for _ in range(0 if found.over else _MOST_LOSSES):
        _run_once(program, work | {"first": found.next}, found, limits, chosen, began)
        if found.over or found.next >= statements.tests:
            break
    else:
        found.fail_rest("crash", f"not run: {_MOST_LOSSES} tests before it ended the process")
    return _verdict(found, statements, time.monotonic() - began)


def run_program(
    program: str,
    stdin: str = "",
    *,
    limits: Limits | None = None,
    mechanism: Mechanism | Literal["auto"] = "auto",
) -> Output:
    """Run a program as a plain script, as `python program.py < stdin` would.

    Errors: ConfigError if no sandbox works here.
    """
    return run_script(program, stdin, limits or Limits(), choose_mechanism(mechanism))


def _run_once(
    program: str,
    work: dict[str, Any],
    found: _Findings,
    limits: Limits,
    mechanism: Mechanism,
    began: float,
) -> None:
    """One process for the program and one for the tests, until the end or the first loss."""
    # what could fail for its size is made before anything is started
    for_checker = memoryview(bundle("checker") + framed(work))
    for_program = memoryview(bundle("program") + framed(program))
    with contextlib.ExitStack() as ends:

        def pipe() -> tuple[int, int]:
            both = os.pipe()
            for end in both:
                ends.callback(os.close, end)
            return both

        called, calls = pipe()
        answers, answered = pipe()
        ours = Watched(
            start("checker", mechanism, limits, (calls, answers)),
            for_checker,
            _MOST_REPORTS,
            last_words=framed(["end"]),
        )
        try:
            theirs = Watched(
                start("program", mechanism, limits, (called, answered)),
                for_program,
                limits.output_kb * 1024,
            )
        except BaseException:
            ours.kill()
            bury(ours)
            raise
    supervise([ours, theirs], ours, began + limits.seconds)
    for report in _reports(ours):
        match report:
            case ["test", number, passed, kind, message]:
                found.passed[number] = passed
                found.next = number + 1
                if not passed:
                    told = (kind, message)
                    found.errors[number] = _loss(message, theirs) if kind == "lost" else told
                    found.over = not work["bare"][number]
            case ["failed", kind, message]:
                found.fail_rest(*(_loss(message, theirs) if kind == "lost" else (kind, message)))
            case ["end"]:
                found.over = True
    if ours.ended == "timeout":
        found.fail_rest("timeout", f"not finished within {limits.seconds:g} seconds")
    elif ours.process.returncode != 0:
        found.fail_rest(*lost_by(ours))


def _reports(watched: Watched) -> list[Any]:
    return list(frames(bytes(watched.output)))


def _loss(how: str, program: Watched) -> tuple[ErrorKind, str]:
    """Why the program's process could not answer; `how` is what its tests saw of it."""
    if program.ended in ("output", "files"):
        return lost_by(program)
    if how == "timeout":
        return "timeout", "a call took longer than limits.call_seconds"
    if how == "output":
        return "output", "answered with what is no plain value, or too large"
    return lost_by(program)


def _check_prompt(prompt: str) -> None:
    try:
        compile(prompt, "<prompt>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise ConfigError(f"prompt: not Python ({error}); give what stands on its own") from None


def _verdict(found: _Findings, statements: Statements, seconds: float) -> Verdict:
    error: ErrorKind | None = None
    message = ""
    if not all(found.passed):
        first = found.passed.index(False)
        kind, text = found.errors.get(first, ("crash", "not run"))
        error, message = kind, one_line(f"test {first}: {text}")
    return Verdict(passed=tuple(found.passed), error=error, message=message, seconds=seconds)
