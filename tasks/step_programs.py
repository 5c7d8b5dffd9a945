"""A language for models with a small vocabulary: a program is a sequence of steps that change a
number.

The question `times_2 then plus_1` asks for twice the number plus one; its program is
`times_2 plus_1`. The task runs programs without a sandbox, since they always end and have no side
effects.
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
"""Value of the setting `data` that selects these problems."""
LONGEST = 8
"""Maximum number of steps of a program."""
HELD_OUT = 4
"""One in HELD_OUT questions of two steps is a test question; each step also occurs as the first and
as the last step of training questions."""
KNOWN = 0.25
"""Probability that a guess is the reference program."""
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
        """The reference program."""
        return self.question.replace(" then ", " ")

    @property
    def tests(self) -> tuple[tuple[int, int], ...]:
        """Golden tests: pairs of input and output."""
        return tuple((x, run_steps(self.program, x)) for x in TESTED)


def step_problems() -> dict[str, tuple[StepProblem, ...]]:
    """The problems by split. 'train' has all questions of one step and three quarters of the
    questions of two steps; 'test' has the remaining quarter."""
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
    """The result of a program on a number. Errors: KeyError if the text is not a program."""
    for step in program.split():
        number = _STEPS[step](number)
    return number


def guess(problem: StepProblem, rng: np.random.Generator) -> str:
    """Returns the reference program with probability KNOWN, and otherwise a program of one or two
    random steps. A model that is warm-started on guesses is therefore sometimes right."""
    if rng.random() < KNOWN:
        return problem.program
    steps = list(_STEPS)
    indices = rng.integers(len(steps), size=int(rng.integers(1, 3)))
    return " ".join(steps[int(step)] for step in indices)
