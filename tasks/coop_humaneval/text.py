"""Prompts and feedback of CoopHumanEval (E.2): full texts, and short texts for small word-level
models."""

from __future__ import annotations

from collections.abc import Sequence

from .data import HumanEvalProblem
from .parse import AUX
from .reward import Findings

_RULES = """\
- Output ONLY the function code, no explanations or examples
- Do NOT include markdown code blocks (```python)
- Do NOT include any text before or after the function
- Do NOT include test cases or example usage
"""

_AUX = """\
Create a helper function for this coding problem.

Problem:
{prompt}

Instructions:
{rules}- Create a helper function named 'aux' that can assist the main function
- The function should return useful data for solving the problem

Your output should follow this format:

def aux(...):
    # your code here
    return result"""

_MAIN = """\
Solve this coding problem by implementing the required function.

Problem:
{prompt}

You have access to a helper function: aux(...)

Instructions:
{rules}- Do NOT redefine the aux() function
- Implement ONLY the '{entry_point}' function as specified
- You can call aux() to assign a value to a variable within your function if helpful

Your output should follow this format:

def {entry_point}({params}):
    # your function code here
    return result"""


def full_prompt(problem: HumanEvalProblem, agent: str) -> str:
    return (_AUX if agent == AUX else _MAIN).format(
        prompt=problem.prompt.strip("\n"),
        rules=_RULES,
        entry_point=problem.entry_point,
        params=problem.params,
    )


def compact_prompt(problem: HumanEvalProblem, agent: str) -> str:
    """The function to write, the main function's signature, and its docstring on one line."""
    name = AUX if agent == AUX else problem.entry_point
    return f"write {name} for {problem.entry_point}({problem.params}) : {problem.summary}"


def full_feedback(
    findings: Findings, problem: HumanEvalProblem, agent: str, *, test_count: int
) -> str:
    """Feedback with static diagnostics, execution diagnostics and the results of the first
    `test_count` tests."""
    main = problem.entry_point
    lines = [
        "Static and execution diagnostics:",
        "- Aux definition: " + _definition("Auxiliary", AUX, findings.aux_defined),
        "- Main definition: " + _definition("Main", main, findings.main_defined),
        "- Syntax: " + _syntax(findings),
        "- Cooperation: " + _cooperation(findings, main),
    ]
    lines += _tests(findings, problem, test_count)
    name = AUX if agent == AUX else main
    return "\n".join(lines) + f"\n\nRevise your {name} accordingly. Output ONLY the function code."


def compact_feedback(findings: Findings, *, test_count: int, total: int) -> str:
    facts = {
        "aux": findings.aux_defined,
        "main": findings.main_defined,
        "syntax": findings.parses,
        "uses": findings.cooperates,
    }
    words = [f"{name} {'yes' if fact else 'no'}" for name, fact in facts.items()]
    words.append(f"tests {sum(findings.passed[:test_count])} of {min(test_count, total)}")
    return " ".join(words)


def _definition(role: str, name: str, defined: bool) -> str:
    if defined:
        return f"FOUND ({role} function {name} defined)"
    return f"MISSING ({role} function {name} is not defined, or returns nothing)"


def _syntax(findings: Findings) -> str:
    if findings.syntax_error:
        return f"ERROR ({findings.syntax_error})"
    return "OK (Combined code syntax OK)"


def _cooperation(findings: Findings, main: str) -> str:
    if not findings.use.calls:
        return f"NONE ({main} does not call aux)"
    if not findings.aux_defined:
        return f"NONE ({main} calls aux, which is not defined)"
    if findings.use.ignored:
        return f"WEAK ({main} calls aux and ignores what it returns)"
    if findings.use.wrapper:
        return f"WEAK ({main} only wraps aux)"
    return f"OK ({main} calls aux and uses what it returns)"


def _tests(findings: Findings, problem: HumanEvalProblem, test_count: int) -> Sequence[str]:
    if not findings.passed:
        return ["- Tests: NOT RUN"]
    passed = findings.passed[:test_count]
    lines = [f"- Tests: {sum(passed)}/{len(passed)} passed"]
    failed = [problem.asserts[k] for k, good in enumerate(passed) if not good]
    lines += [f"  failed: {source}" for source in failed]
    reason = findings.message.partition(": ")[2]
    if failed and reason != failed[0]:
        # the message is about the first failed test, which is then among those shown
        lines.append(f"  first error: {reason}")
    return lines
