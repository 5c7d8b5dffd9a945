"""Math problems whose answers need not be numbers, such as the problems of MATH500."""

from __future__ import annotations

from collections.abc import Sequence

from ..math_duo.data import load_problems, question_answers, read_splits
from ..search.question import Question


def load_expressions(
    data: str, test_data: str | None, train: int, test: int, seed: int
) -> dict[str, Sequence[Question]]:
    """The problems of `math_duo` by split, with their answers as text; no problem is left out.

    Errors: as `load_problems`.
    """

    def generated() -> dict[str, tuple[Question, ...]]:
        return {
            split: tuple(
                Question(problem.question, (f"{problem.answer:g}",)) for problem in problems
            )
            for split, problems in load_problems("generated", None, train, test, seed).items()
        }

    return read_splits(data, test_data, _read, generated)


def _read(data: str) -> tuple[Question, ...]:
    pairs = dict(question_answers(data))
    return tuple(Question(question, (answer.strip(),)) for question, answer in pairs.items())
