"""Runs programs on tests in the sandbox."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from colearn.programs.sandbox import ErrorKind, Limits, run_program, run_tests

from ..step_programs import are_steps, run_steps
from .problem import Case, ProgrammingProblem, agrees, same, script

_SHOWN = 1000
_LEAST = 0.05
"""Minimum remaining time in seconds for starting a program."""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """Result of a program on one test."""

    passed: bool
    error: ErrorKind | None
    """The error that ended the program; None if the program ran without an error, whether or not
    its output is right."""
    printed: str = ""
    """The program's output, or the error message."""


def try_test(problem: ProgrammingProblem, program: str, test: Case, seconds: float) -> CaseResult:
    """Runs a program on a tester's test.

    Errors: ConfigError if no sandbox works here.
    """
    if problem.steps:
        return _stepped(program, test)
    code, stdin = script(problem, program, test)
    result = run_program(code, stdin, limits=Limits(seconds=seconds))
    if result.error is not None:
        return CaseResult(False, result.error, f"{result.error}: {result.message}")
    return CaseResult(agrees(problem, result.text, test), None, result.text[:_SHOWN].strip())


def _stepped(program: str, test: Case) -> CaseResult:
    if not are_steps(program):
        return CaseResult(False, "syntax", "no steps")
    printed = str(run_steps(program, int(test.input)))
    return CaseResult(same(printed, test.output), None, printed)


def try_golden(problem: ProgrammingProblem, program: str, seconds: float) -> tuple[CaseResult, ...]:
    """Runs a program on all golden tests, each in a separate process. `seconds` limits all tests
    together, so the tests after an endless loop count as timed out. A program that does not parse
    is run only once.

    Errors: as in `try_test`.
    """
    if problem.entry_point is not None:
        return _asserted(problem, program, seconds)
    ends = time.monotonic() + seconds
    trials: list[CaseResult] = []
    for test in problem.tests:
        remaining = ends - time.monotonic()
        if trials and trials[0].error == "syntax":
            trials.append(trials[0])
        elif remaining < _LEAST:
            trials.append(CaseResult(False, "timeout"))
        else:
            trials.append(try_test(problem, program, test, remaining))
    return tuple(trials)


def _asserted(problem: ProgrammingProblem, program: str, seconds: float) -> tuple[CaseResult, ...]:
    assert problem.entry_point is not None
    verdict = run_tests(
        program,
        problem.entry_point,
        problem.asserts,
        prompt=problem.preamble,
        limits=Limits(seconds=seconds),
    )
    if verdict.error == "syntax":
        return tuple(CaseResult(False, "syntax", verdict.message) for _ in verdict.passed)
    return tuple(
        CaseResult(passed, None if kind == "assertion" else kind, verdict.message)
        for passed, kind in zip(verdict.passed, verdict.errors, strict=True)
    )


def share(trials: Sequence[CaseResult]) -> float:
    """Share of tests passed, in [0, 1]; 0 without tests."""
    return sum(trial.passed for trial in trials) / len(trials) if trials else 0.0
