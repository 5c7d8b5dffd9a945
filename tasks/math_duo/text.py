"""Prompts of the math team: the paper's prompts (C.2), a judge's prompt, and compact prompts."""

from __future__ import annotations

_REASONER = """\
You are a helpful assistant that solves math problems via careful reasoning.

Problem: {problem}

First, outline the key reasoning steps. Then carry out the full solution.
Before giving the full reasoning, summarize the steps clearly in:
**Reasoning Steps:**
Then provide your complete solution concisely. Put your final answer after ####.

Rules:
* The final value must be a single number or expression (simplified if possible).
* Do not add words after it; only the final value goes after ####.

The final line must contain only the final answer, e.g., #### 123"""

_REASONER_LATER = """\
You are a helpful assistant that refines mathematical solutions through reasoning.

Problem: {problem}

History (previous attempts and outputs):
{history}

First, compare your previous answer with the printed output of the Python Tool Agent.
* If the code output corrects a computational slip in your reasoning, adopt the corrected value.
* If the code likely has a bug (e.g., mishandled edge cases, precision, domains), keep the \
mathematically correct answer and explain briefly.
Then solve the problem again, more robustly. Summarize the key steps in:
**Reasoning Steps:**
Finish with the final answer after ####. The final line must contain only the value."""

_TOOL = """\
You are a helpful programming assistant that writes Python to solve the math problem.

Problem: {problem}

Requirements:
* Write correct, readable Python that computes the final answer, in one block that begins with \
```python and ends with ```.
* Think step by step in comments if helpful.
* Use only the standard library and deterministic math (no internet, no randomness).
* At the end, PRINT ONLY the final numeric or symbolic answer (nothing else)."""

_TOOL_LATER = """\
You are a helpful programming assistant that refines Python solutions for math problems.

Problem: {problem}

History (reasoning vs. execution mismatches):
{history}

Tasks:
1. Judge whether the Reasoning Agent's answer or your previous printed result is more likely \
correct (consider numerical stability, edge cases, exact vs. float).
2. Fix or rewrite the code so it reliably computes the correct final answer.
* Prefer exact arithmetic (fractions, integers, rational simplification) when possible.
* Add minimal checks for domain/edge cases. Keep outputs deterministic.

Respond with one block that begins with ```python and ends with ```; print ONLY the final answer \
on the last line."""

_JUDGE = """\
You are a judge of mathematical solutions.

Problem: {problem}

Answers of your team:
{history}

Weigh them against each other, check the most convincing ones, and decide.
The final line must contain only the final answer, e.g., #### 123"""


def full_prompt(role: str, problem: str, history: str) -> str:
    """The prompt of `role` ('reasoner', 'tool' or 'judge'); `history` is '' at the first turn."""
    first, later = {
        "reasoner": (_REASONER, _REASONER_LATER),
        "tool": (_TOOL, _TOOL_LATER),
        "judge": (_JUDGE, _JUDGE),
    }[role]
    return (later if history else first).format(problem=problem, history=history)


def compact_prompt(role: str, problem: str, answers: dict[str, str]) -> str:
    """A prompt with the role, the question's expression, and each agent's last answer in digits."""
    words = [role, problem.removeprefix("What is ").removesuffix("?")]
    words += [f"{agent} {answer}" for agent, answer in answers.items()]
    return " ".join(words)
