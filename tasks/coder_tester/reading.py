"""Parses a tester's answer into one test case."""

from __future__ import annotations

import re

from colearn.text.reasoning import without_reasoning

from .problem import Case, ProgrammingProblem, arguments, is_literal

INPUT, OUTPUT = "**Test Input:**", "**Test Output:**"
LONGEST = 20_000
_FENCED = re.compile(r"```\w*[ \t]*\n(.*?)\n?```", re.DOTALL)


def read_test(problem: ProgrammingProblem, text: str) -> Case | None:
    """The texts after the only `**Test Input:**` and the only `**Test Output:**` that follows it,
    without code fences. None if either is missing, empty or repeated, or, where a function is
    tested, is not a Python literal."""
    text = without_reasoning(text)
    if text.count(INPUT) != 1 or text.count(OUTPUT) != 1 or len(text) > LONGEST:
        return None
    before, _, output = text.partition(OUTPUT)
    _, mark, given = before.partition(INPUT)
    if not mark:
        return None
    test = Case(_bare(given), _bare(output))
    if not test.input or not test.output:
        return None
    if problem.entry_point is not None and (
        arguments(test.input) is None or not is_literal(test.output)
    ):
        return None
    return test


def _bare(text: str) -> str:
    fenced = _FENCED.fullmatch(text.strip())
    return (fenced[1] if fenced else text).strip()
