"""Runs a program against tests or as a script."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from colearn.errors import ConfigError

from ._bundle import bundle
from ._plain import framed, frames
from .confine import Mechanism, start
from .limits import Limits
from .mechanism import check_mechanism
from .script import TOO_LONG, is_too_long, run_script
from .statements import take_apart
from .supervise import Watched, bury, lost_by, supervise
from .verdict import ErrorKind, Output, Verdict, one_line

_MOST_LOSSES = 3
"""Number of lost processes after which the remaining tests are not run."""
_MOST_REPORTS = 64 * 1024 * 1024


@dataclass(slots=True)
class _Findings:
    """Results of the tests so far."""

    passed: list[bool]
    errors: dict[int, tuple[ErrorKind, str]] = field(default_factory=dict)
    """Error kind and message by the index of a failed test."""
    over: bool = False
    """Whether no further test can run."""
    next: int = 0
    """Index of the next test."""

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
    limits: Limits | None = None,
    mechanism: Mechanism = "bwrap",
) -> Verdict:
    """Run trusted tests on an untrusted program; each bare assert counts as one test.

    program: Python source. The tests call its function `entry_point` in a separate process.
    tests: one string, in which each statement with an `assert` is a test (the asserts may be in the
        body of `check(candidate)`), or one string per test. Tests call the entry point by its name
        or as `candidate`.
    prompt: trusted source with helpers that the tests may use, such as HumanEval's prompts.

    A test passes if it completes while the program's process is alive. After a failed bare assert
    the next tests run. After any other failed statement the remaining tests fail, because plain
    Python would stop there. If a bare assert ends the program's process, the next tests use a fresh
    process (at most three times), which first repeats all earlier statements except bare asserts.

    Errors: ConfigError if the tests do not parse or are empty, the entry point is not an
    identifier, the prompt does not parse, or the sandbox does not work on this machine.
    """
    limits = limits or Limits()
    check_mechanism(mechanism)
    if not entry_point.isidentifier():
        raise ConfigError(
            f"entry_point: {entry_point!r} is not a function name; give an identifier"
        )
    _check_prompt(prompt)
    statements = take_apart(tests, entry_point, prompt=prompt)
    began = time.monotonic()
    work = {
        "prompt": prompt,
        "entry_point": entry_point,
        "entry_names": list(statements.names),
        "statements": [list(source) for source in statements.sources],
        "bare": list(statements.bare),
    }
    findings = _Findings([False] * statements.tests)
    if is_too_long(program):
        findings.fail_rest("syntax", TOO_LONG)
    for _ in range(0 if findings.over else _MOST_LOSSES):
        _run_once(program, work | {"first": findings.next}, findings, limits, mechanism, began)
        if findings.over or findings.next >= statements.tests:
            break
    else:
        findings.fail_rest("crash", f"not run: {_MOST_LOSSES} earlier tests ended the process")
    return _verdict(findings)


def run_program(
    program: str,
    stdin: str = "",
    *,
    limits: Limits | None = None,
    mechanism: Mechanism = "bwrap",
    commands: bool = False,
) -> Output:
    """Run a program as a plain script, as `python program.py < stdin` would.

    commands: whether the program may start the machine's commands (`/usr/bin`), in a root folder in
        memory whose every part but the system's is writable. Needs `bwrap`.
    Errors: ConfigError if the sandbox does not work on this machine.
    """
    check_mechanism(mechanism)
    if commands and mechanism != "bwrap":
        raise ConfigError("mechanism: commands run under 'bwrap' only; leave mechanism out")
    return run_script(program, stdin, limits or Limits(), mechanism, commands=commands)


def _run_once(
    program: str,
    work: dict[str, Any],
    findings: _Findings,
    limits: Limits,
    mechanism: Mechanism,
    began: float,
) -> None:
    """Run the tests until the first lost process, with separate processes for program and tests."""
    # serialised before any process starts, since a value may be too large
    for_checker = memoryview(bundle("checker") + framed(work))
    for_program = memoryview(bundle("program") + framed(program))
    with contextlib.ExitStack() as ends:

        def pipe() -> tuple[int, int]:
            descriptors = os.pipe()
            for end in descriptors:
                ends.callback(os.close, end)
            return descriptors

        called, calls = pipe()
        answers, answered = pipe()
        checker = Watched(
            start("checker", mechanism, limits, (calls, answers)),
            for_checker,
            _MOST_REPORTS,
            last_words=framed(["end"]),
        )
        try:
            candidate = Watched(
                start("program", mechanism, limits, (called, answered)),
                for_program,
                limits.output_kb * 1024,
            )
        except BaseException:
            checker.kill()
            bury(checker)
            raise
    supervise([checker, candidate], checker, began + limits.seconds)
    for report in frames(bytes(checker.output)):
        match report:
            case ["test", number, passed, kind, message]:
                findings.passed[number] = passed
                findings.next = number + 1
                if not passed:
                    failure = _loss(message, candidate) if kind == "lost" else (kind, message)
                    findings.errors[number] = failure
                    findings.over = not work["bare"][number]
            case ["failed", kind, message]:
                findings.fail_rest(
                    *(_loss(message, candidate) if kind == "lost" else (kind, message))
                )
            case ["end"]:
                findings.over = True
    if checker.ended == "timeout":
        findings.fail_rest("timeout", f"not finished within {limits.seconds:g} seconds")
    elif checker.process.returncode != 0:
        findings.fail_rest(*lost_by(checker))


def _loss(outcome: str, program: Watched) -> tuple[ErrorKind, str]:
    """Returns why the program's process gave no answer; `outcome`: what the tests observed."""
    if program.ended in ("output", "files"):
        return lost_by(program)
    if outcome == "output":
        return "output", "answered with a value that is not plain or too large"
    return lost_by(program)


def _check_prompt(prompt: str) -> None:
    try:
        compile(prompt, "<prompt>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise ConfigError(f"prompt: not valid Python ({error}); give complete source") from None


def _verdict(findings: _Findings) -> Verdict:
    error: ErrorKind | None = None
    message = ""
    if not all(findings.passed):
        first = findings.passed.index(False)
        kind, text = findings.errors.get(first, ("crash", "not run"))
        error, message = kind, one_line(f"test {first}: {text}")
    kinds = (findings.errors.get(number, (None, ""))[0] for number in range(len(findings.passed)))
    return Verdict(
        passed=tuple(findings.passed),
        error=error,
        errors=tuple(kinds),
        message=message,
    )
