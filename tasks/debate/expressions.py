"""Math problems whose answers need not be numbers, such as those of MATH500."""

from __future__ import annotations

from collections.abc import Sequence

from colearn.errors import ConfigError

from ..math_duo.data import HUB_SETS, TEST_SHARE, load_problems, question_answers
from ..rows import check_trained_on
from ..search.question import Question


def load_expressions(
    data: str, test_data: str | None, train: int, test: int, seed: int
) -> dict[str, Sequence[Question]]:
    """The problems of `math_duo` by split, with their answers as text; none is left out.

    Errors: as `load_problems`.
    """
    known = HUB_SETS.get(data)
    if known is not None:
        check_trained_on(data, known.tests_only, "polaris")
        test_data = test_data or known.tests
    if data == "generated":
        splits = {
            split: tuple(Question(one.question, (f"{one.answer:g}",)) for one in problems)
            for split, problems in load_problems(data, None, train, test, seed).items()
        }
    else:
        problems = _read(data)
        cut = len(problems)
        if test_data is None:
            cut -= max(cut // TEST_SHARE, 1)
        splits = {"train": problems[:cut], "test": problems[cut:]}
    if test_data is not None:
        splits["test"] = _read(test_data)
        tested = {question.text for question in splits["test"]}
        splits["train"] = tuple(q for q in splits["train"] if q.text not in tested)
    for split, kept in splits.items():
        if not kept:
            raise ConfigError(f"task.data: {data} leaves no problem to {split}; add some")
    return dict(splits)


def _read(data: str) -> tuple[Question, ...]:
    pairs = dict(question_answers(data))
    return tuple(Question(question, (answer.strip(),)) for question, answer in pairs.items())
