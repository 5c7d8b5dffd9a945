"""A language of small programs for models of a few words: steps that change a number in turn.

`times_2 then plus_1` asks for twice the number and one more; `times_2 plus_1` is its program. A
program is run by the task itself: it always ends and touches nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

_STEPS: Mapping[str, Callable[[int], int]] = {
    "times_2": lambda x: 2 * x,
    "times_3": lambda x: 3 * x,
    "plus_1": lambda x: x + 1,
    "plus_2": lambda x: x + 2,
    "minus_1": lambda x: x - 1,
    "negate": lambda x: -x,
}
STEPS = "steps"
"""The setting `data` of these problems."""
LONGEST = 8
"""Steps of a program."""
HELD_OUT = 4
"""One in so many questions of two steps is a test question; every step opens and ends others."""
KNOWN = 0.25
"""Share of guesses that are right."""
TESTED = (1, 2, 3, 5, 8)
"""Inputs of the golden tests."""


@dataclass(frozen=True, slots=True)
class StepProblem:
    """A question of one or two steps."""

    question: str

    def __str__(self) -> str:
        return self.question

    @property
    def program(self) -> str:
        """The reference."""
        return self.question.replace(" then ", " ")

    @property
    def tests(self) -> tuple[tuple[int, int], ...]:
        """Golden tests: inputs and outputs."""
        return tuple((x, run_steps(self.program, x)) for x in TESTED)


def step_problems() -> dict[str, tuple[StepProblem, ...]]:
    """All questions of one step, and three quarters of those of two, are to train on; the other
    questions of two steps are the test split."""
    trained = [StepProblem(step) for step in _STEPS]
    tested: list[StepProblem] = []
    for (i, first), (j, second) in itertools.product(enumerate(_STEPS), repeat=2):
        split = tested if (i + j) % HELD_OUT == 0 else trained
        split.append(StepProblem(f"{first} then {second}"))
    return {"train": tuple(trained), "test": tuple(tested)}


def are_steps(program: str) -> bool:
    """Whether a text is a program: one to `LONGEST` steps."""
    steps = program.split()
    return 0 < len(steps) <= LONGEST and all(step in _STEPS for step in steps)


def run_steps(program: str, number: int) -> int:
    """What a program makes of a number. Errors: KeyError if it is no program."""
    for step in program.split():
        number = _STEPS[step](number)
    return number


def guess(problem: StepProblem, rng: np.random.Generator) -> str:
    """A program of one or two random steps; a quarter of the time the reference, so that a warm
    start on guesses is right now and then."""
    if rng.random() < KNOWN:
        return problem.program
    steps = list(_STEPS)
    drawn = rng.integers(len(steps), size=int(rng.integers(1, 3)))
    return " ".join(steps[int(step)] for step in drawn)
