"""Parses a tester's answer into one test case."""

from __future__ import annotations

import re

from colearn.text.reasoning import without_reasoning

from ..answers import code_block
from .problem import Case, ProgrammingProblem, arguments, is_literal

INPUT, OUTPUT = "**Test Input:**", "**Test Output:**"
LONGEST = 20_000
_STEPS_SHOWN = 200
_NUMBERS = re.compile(r"(-? ?[0-9]{1,6}) (-? ?[0-9]{1,6})")
_FENCED = re.compile(r"```\w*[ \t]*\n(.*?)\n?```", re.DOTALL)


def read_test(problem: ProgrammingProblem, text: str) -> Case | None:
    """Parses a test case: the text after `**Test Input:**`, then the text after `**Test Output:**`,
    both without code fences. Returns None if a mark or a text is missing, if a mark is repeated, or
    if a function is tested and a text is not a Python literal. For a program of steps, a test case
    is two whole numbers."""
    text = without_reasoning(text)
    if problem.steps:
        match = _NUMBERS.fullmatch(text.strip())
        return match and Case(*(number.replace(" ", "") for number in match.groups()))
    if text.count(INPUT) != 1 or text.count(OUTPUT) != 1 or len(text) > LONGEST:
        return None
    before, _, output = text.partition(OUTPUT)
    _, mark, input_text = before.partition(INPUT)
    if not mark:
        return None
    test = Case(_bare(input_text), _bare(output))
    if not test.input or not test.output:
        return None
    if problem.entry_point is not None and (
        arguments(test.input) is None or not is_literal(test.output)
    ):
        return None
    return test


def read_program(problem: ProgrammingProblem, text: str) -> str:
    """Returns the program in the only fenced block, or the steps; '' if there is no program."""
    if problem.steps:
        return without_reasoning(text).strip()[:_STEPS_SHOWN]
    return code_block(text) or ""


def _bare(text: str) -> str:
    fenced = _FENCED.fullmatch(text.strip())
    return (fenced[1] if fenced else text).strip()
