"""Prompts of planner, coder and reflector, written here: the paper does not print its own."""

from __future__ import annotations


def plan(problem: str, history: str) -> str:
    """The planner's prompt."""
    return (
        f"Plan in a few steps how to solve this problem in Python. Write no code.\n\n{problem}"
        f"{history}"
    )


def code(problem: str, steps: str, history: str) -> str:
    """The coder's prompt."""
    return (
        "Write the Python function that this problem asks for, in one fenced block.\n\n"
        f"{problem}{history}\n\nPlan:\n{steps}"
    )


def verdict(program: str, score: float, message: str) -> str:
    """Text block: a program, its share of passed tests and the first failure."""
    return f"\n\nProgram:\n{program}\n\nTests passed: {score:.0%}. {message}".rstrip()


def reflect(problem: str, told: str) -> str:
    """For the reflector."""
    return (
        "Say in a few sentences what is wrong with this program and how to mend it.\n\n"
        f"{problem}{told}"
    )


def history(told: str, reflection: str) -> str:
    """Summary of a round, included in the prompts of the next round."""
    return f"{told}\n\nReflection:\n{reflection}"
