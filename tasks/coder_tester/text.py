"""Prompts of coder and tester, from the paper (C.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .problem import Case, ProgrammingProblem

_ASK = """\
You are a helpful assistant that writes Python to solve the problem. Think step by step, then \
output code.

Important:
{rules}

Now solve:

Problem: ```
{problem}
```

First, decide on the number and types of inputs required{example}, then implement the solution{end}.

Please answer in the following format:
**Code:**
```python
# your code here
```"""

_REFINE = """\
You are a helpful assistant that corrects and refines code.

Important:
{rules}

Problem:
{problem}

Use the history below to guide your fixes:
{history}

If your previous code crashed, first fix the bug. If execution succeeded but outputs mismatched \
the expected output, decide if the test case is correct.
- If the test is correct, refine your code to pass it.
- If the test is wrong, verify your program's logic and keep it.

Provide the final, corrected code. Respond in the format:
**Code:**
```python
# your code here
```"""

_TEST = """\
You are a helpful assistant that creates unit test cases (input + expected output) for a coding \
task.

Problem: ```
{problem}
```
{seen}
Provide one new high-quality test case. Before giving the test case, reason carefully to ensure \
the output is correct, then derive the output for your chosen input.{form}

Respond in the format:
**Test Input:**
input here
**Test Output:**
output here"""

_RETEST = """\
You are an assistant that checks and refines unit tests for a coding task.

Problem:
{problem}

Analyze the history below:
{history}
{seen}
First, decide whether your previous test case was correct (watch for misunderstandings of the \
task). If it was wrong or unclear, provide a corrected test case.{form}

Respond in the format:
**Test Input:**
input here
**Test Output:**
output here"""

_PROGRAM_RULES = """\
- Read all inputs via input().
- Print all results with print().
- Do not hardcode or fabricate inputs."""
_FUNCTION_RULES = """\
- Define the function {name}; tests call it.
- Return the result; read no input.
- Do not hardcode results."""


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """Record of one turn: program, test, and the program's output for the test."""

    code: str
    """The program; '' if the coder's answer had no valid format."""
    test: Case | None
    printed: str
    """The program's output or the reason for its failure; '' if it did not run on a test."""


def coder_prompt(problem: ProgrammingProblem, rounds: Sequence[TurnRecord]) -> str:
    """The coder's prompt; after the first turn it lists all mismatches so far."""
    if problem.steps:
        return _compact("coder", problem, rounds)
    function = problem.entry_point
    rules = _PROGRAM_RULES if function is None else _FUNCTION_RULES.format(name=function)
    if rounds:
        return _REFINE.format(
            rules=rules, problem=problem.question, history=history(rounds, whole=True)
        )
    example = " (e.g., x = int(input()), b = int(input()))" if function is None else ""
    end = " and print the result" if function is None else ""
    return _ASK.format(rules=rules, problem=problem.question, example=example, end=end)


def tester_prompt(
    problem: ProgrammingProblem, rounds: Sequence[TurnRecord], program: str | None
) -> str:
    """The tester's prompt; after the first turn it lists all mismatches so far. In
    sequential play it includes the coder's newest program."""
    if problem.steps:
        text = _compact("tester", problem, rounds)
        return text if program is None else f"{text} newest {program or 'none'}"
    program_text = (
        f"\nThe coder's newest program:\n{program or '(none)'}\n" if program is not None else ""
    )
    form = ""
    if problem.entry_point is not None:
        form = (
            f" The input is what stands between the brackets of a call of {problem.entry_point}, "
            "the output the value that it returns, both as Python literals."
        )
    if rounds:
        text = history(rounds, whole=False)
        return _RETEST.format(problem=problem.question, history=text, seen=program_text, form=form)
    return _TEST.format(problem=problem.question, seen=program_text, form=form)


def _compact(role: str, problem: ProgrammingProblem, rounds: Sequence[TurnRecord]) -> str:
    """A prompt of one line, which shows only the newest turn."""
    if not rounds:
        return f"{role} {problem.question}"
    last = rounds[-1]
    line = f"{role} {problem.question} program {last.code or 'none'}"
    if last.test is None:
        return f"{line} test none"
    return f"{line} test {last.test.input} {last.test.output} printed {last.printed or 'none'}"


def history(rounds: Sequence[TurnRecord], *, whole: bool) -> str:
    """Formats the mismatches so far; with `whole`, also the programs."""
    return "\n\n".join(
        _told(number, record, whole) for number, record in enumerate(rounds, start=1)
    )


def _told(number: int, record: TurnRecord, whole: bool) -> str:
    lines = [f"Attempt {number}:"]
    if whole:
        lines += ["Code:", record.code or "(no single block that begins with ```python)"]
    elif not record.code:
        lines.append("The coder gave no program.")
    if record.test is None:
        lines.append("No valid test case was given.")
    else:
        lines += [f"Test input:\n{record.test.input}", f"Expected output:\n{record.test.output}"]
        if record.code:
            lines.append(f"Execution output:\n{record.printed or '(nothing)'}")
    return "\n".join(lines)
