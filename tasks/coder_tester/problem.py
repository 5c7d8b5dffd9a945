"""A programming problem with golden tests and reference solutions."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from ..answers import LONGEST, plain_value


@dataclass(frozen=True, slots=True)
class Case:
    """A test case with an input and an expected output. For a program, input and output are text.
    For a function, the input is the arguments of a call, and the output is its return value, in
    Python syntax."""

    input: str
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgrammingProblem:
    """A programming problem. Its programs read an input and print an output, or define the function
    `entry_point`, or are steps that change a number."""

    name: str
    question: str
    tests: tuple[Case, ...] = ()
    """Golden tests of a program."""
    entry_point: str | None = None
    asserts: str = ""
    """Golden tests of a function: Python source in which each statement with an `assert` is a
    test."""
    preamble: str = ""
    """Trusted source code that `asserts` may use."""
    solutions: tuple[str, ...] = ()
    """Reference programs; () if the data has none."""
    steps: bool = False
    """Whether programs are written in the language of `step_programs`."""

    def __str__(self) -> str:
        return self.name


def script(problem: ProgrammingProblem, program: str, test: Case) -> tuple[str, str]:
    """Returns a program that prints the answer to a test, and the program's standard input. The
    answer of a function is the last line."""
    if problem.entry_point is None:
        return program, test.input
    call = f"{problem.entry_point}(*{arguments(test.input)!r})"
    return f"{program}\nprint('\\n' + repr({call}))\n", ""


def agrees(problem: ProgrammingProblem, printed: str, test: Case) -> bool:
    """Whether the output of a test's script is the expected one. Values of a function are compared
    as by an `assert` of the golden tests: by Python's `==`, whatever else the function prints."""
    if problem.entry_point is None:
        return same(printed, test.output)
    expected, last = plain_value(test.output), printed.strip().rpartition("\n")[2]
    if last == repr(expected):
        return True
    return len(last) <= LONGEST and is_literal(last) and bool(plain_value(last) == expected)


def same(printed: str, expected: str) -> bool:
    """Whether two outputs are equal, ignoring white space."""
    return printed.split() == expected.split()


def arguments(text: str) -> tuple[Any, ...] | None:
    """Parses the arguments of a call, without brackets; None if they are not literals."""
    if not text.strip():
        return ()
    value = plain_value(f"({text},)") if is_literal(f"({text},)") else None
    return value if isinstance(value, tuple) else None


def is_literal(text: str) -> bool:
    """Whether a text is one Python value that Python can also print. (Python can parse some long
    hexadecimal integers that it cannot print in decimal.)"""
    try:
        repr(ast.literal_eval(text.strip()))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True
