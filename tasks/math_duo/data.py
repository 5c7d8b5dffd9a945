"""Loads math problems: generated arithmetic, from the hub, or from a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from colearn.errors import ConfigError
from colearn.text.notes import note

from ..generated import draw_splits
from ..rows import HubSplit, check_trained_on, file_rows, split_rows
from .checker import number

Problem = TypeVar("Problem")

TEST_SHARE = 10
"""Without a test split, one problem in TEST_SHARE is in the test split."""


@dataclass(frozen=True, slots=True)
class MathProblem:
    """A question and its numerical answer."""

    question: str
    answer: float

    def __str__(self) -> str:
        return self.question


def _after_marks(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["question"], row["answer"].rpartition("####")[2]


def _problem_answer(row: Mapping[str, Any]) -> tuple[str, str]:
    answer = row["answer"]
    return row["problem"], str(answer[0] if isinstance(answer, list) else answer)


def _question_answer(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["question"], str(row["answer"])


HUB_SETS = {
    "polaris": HubSplit("POLARIS-Project/Polaris-Dataset-53K", None, "train", _problem_answer),
    "aime24": HubSplit("HuggingFaceH4/aime_2024", None, "train", _problem_answer, tests_only=True),
    "aime25": HubSplit("MultiturnRL/AIME25", None, "aime25", _problem_answer, tests_only=True),
    "math500": HubSplit("HuggingFaceH4/MATH-500", None, "test", _problem_answer, tests_only=True),
    "amc23": HubSplit("math-ai/amc23", None, "test", _question_answer, tests_only=True),
    "olympiad": HubSplit(
        "lkevinzc/math-eval", None, "olympiad_bench", _problem_answer, tests_only=True
    ),
    "gsm8k": HubSplit("openai/gsm8k", "main", "train", _after_marks, tests="gsm8k_test"),
    "gsm8k_test": HubSplit("openai/gsm8k", "main", "test", _after_marks, tests_only=True),
}
"""Data sets by their names in `task.data`."""


def load_problems(
    data: str, test_data: str | None, train: int, test: int, seed: int
) -> dict[str, Sequence[MathProblem]]:
    """The problems by split. Rows whose answer is ambiguous or not a number are left out, and a
    note reports their number. Without `test_data`, the test split is the official test split of the
    data, or a tenth of the data if there is none.

    Errors: ConfigError for data that cannot be read; MissingExtra if an extra is needed.
    """
    return read_splits(data, test_data, _read, lambda: _generated(train, test, seed))


def read_splits(
    data: str,
    test_data: str | None,
    read: Callable[[str], Sequence[Problem]],
    generated: Callable[[], Mapping[str, Sequence[Problem]]],
) -> dict[str, Sequence[Problem]]:
    """The problems by split, either read from a data set or file by `read`, or returned by
    `generated`. Test problems are removed from the training split; two problems are the same if
    their `str` is equal.

    Errors: as `load_problems`.
    """
    known = HUB_SETS.get(data)
    if known is not None:
        check_trained_on(data, known.tests_only, "polaris")
        test_data = test_data or known.tests
    if data == "generated" and test_data is None:
        return dict(generated())
    problems = generated()["train"] if data == "generated" else read(data)
    tested = None if test_data is None else read(test_data)
    return dict(split_rows(problems, tested, str, share=TEST_SHARE, data=data, kind="problem"))


def question_answers(data: str) -> list[tuple[str, str]]:
    """Question and answer of each row as text, from the hub or a file.

    Errors: as `load_problems`.
    """
    if data in HUB_SETS:
        return [row.value for row in HUB_SETS[data].rows()]
    choices = ", ".join(("generated", *HUB_SETS))
    rows = file_rows(Path(data).expanduser(), choices)
    return [_pair(row.value, row.where) for row in rows]


def _read(data: str) -> tuple[MathProblem, ...]:
    pairs = question_answers(data)
    values = {question: number(answer) for question, answer in pairs}
    dropped = [answer for question, answer in pairs if values[question] is None]
    if dropped:
        note(
            f"task.data: {data}: leaves out {len(dropped)} of {len(pairs)} rows, whose answers are "
            f"not one number, such as {dropped[0]!r:.60}; write thousands as 1,234 and "
            "decimals as 0.5"
        )
    return tuple(
        MathProblem(question, value) for question, value in values.items() if value is not None
    )


def _pair(row: Any, location: str) -> tuple[str, str]:
    match row:
        case {"problem": str(problem), "answer": str() | int() | float() as answer}:
            return problem, str(answer)
    raise ConfigError(
        f"task.data: {location} has no 'problem' and 'answer', a text and a text or number; fix it"
    )


def arithmetic(rng: np.random.Generator) -> MathProblem:
    """A sum of two or three terms, each a digit or a product of two digits."""
    terms = []
    for _ in range(int(rng.integers(2, 4))):
        digits = rng.integers(1, 10, size=int(rng.integers(1, 3)))
        terms.append(" * ".join(map(str, digits)))
    text = terms[0]
    for term in terms[1:]:
        text += f" {'+-'[int(rng.integers(2))]} {term}"
    return MathProblem(f"What is {text}?", float(value_of(text)))


def value_of(text: str) -> int:
    """Value of a sum of products of digits, written with single spaces."""
    total, sign, factor = 0, 1, 1
    for word in (*text.split(), "+"):
        if word in "+-":
            total += sign * factor
            sign, factor = (1 if word == "+" else -1), 1
        elif word != "*":
            factor *= int(word)
    return total


@lru_cache(maxsize=16)
def _generated(train: int, test: int, seed: int) -> dict[str, Sequence[MathProblem]]:
    sizes = {"train": train, "test": test}
    return draw_splits(arithmetic, str, sizes=sizes, seed=seed, remedy="ask for fewer")
