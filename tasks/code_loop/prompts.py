"""What planner, coder and reflector are told; the paper prints none of its prompts for them."""

from __future__ import annotations


def plan(problem: str, history: str) -> str:
    """For the planner."""
    return (
        f"Plan in a few steps how to solve this problem in Python. Write no code.\n\n{problem}"
        f"{history}"
    )


def code(problem: str, steps: str, history: str) -> str:
    """For the coder."""
    return (
        "Write the Python function that this problem asks for, in one fenced block.\n\n"
        f"{problem}{history}\n\nPlan:\n{steps}"
    )


def found(program: str, score: float, message: str) -> str:
    """What the verifier found in a program."""
    return f"\n\nProgram:\n{program}\n\nTests passed: {score:.0%}. {message}".rstrip()


def reflect(problem: str, told: str) -> str:
    """For the reflector."""
    return (
        "Say in a few sentences what is wrong with this program and how to mend it.\n\n"
        f"{problem}{told}"
    )


def history(told: str, reflection: str) -> str:
    """What a later round is told of the one before."""
    return f"{told}\n\nReflection:\n{reflection}"
