"""Prompts of planner, coder and reflector. They were written for colearn, since the paper does not
print its prompts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Prompts:
    """Templates with named fields in braces."""

    plan: str
    code: str
    verdict: str
    """Template for the result of a program: its text, its share of passed tests and the first
    failure."""
    reflect: str
    history: str
    """Template for the summary of a round in the prompts of the next round."""


PYTHON = Prompts(
    plan="Plan in a few steps how to solve this problem in Python. Write no code.\n\n"
    "{question}{history}",
    code="Write the Python function that this problem asks for, in one fenced block.\n\n"
    "{question}{history}\n\nPlan:\n{plan}",
    verdict="\n\nProgram:\n{program}\n\nTests passed: {score:.0%}. {message}",
    reflect="Say in a few sentences what is wrong with this program and how to mend it.\n\n"
    "{question}{verdict}",
    history="{verdict}\n\nReflection:\n{reflection}",
)
STEPS = Prompts(
    plan="planner {question}{history}",
    code="coder {question}{history} plan {plan}",
    verdict=" program {program} passed {score:.0%} {message}",
    reflect="reflector {question}{verdict}",
    history="{verdict} reflection {reflection}",
)
