"""HotpotQA, 2WikiMultihopQA, MuSiQue and Natural Questions, read from the hub on demand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..rows import hub_rows
from .question import Question


@dataclass(frozen=True, slots=True)
class DataSet:
    """A hub data set: its location, its train and test splits, and its row parser."""

    path: str
    name: str | None
    splits: Mapping[str, str]
    answers: Callable[[Mapping[str, Any]], list[str]]
    titles: Callable[[Mapping[str, Any]], list[str]]
    question: str = "question"


def _paragraphs(row: Mapping[str, Any]) -> list[str]:
    return [part["title"] for part in row["paragraphs"] if part["is_supporting"]]


_OPEN = {"train": "train", "test": "validation"}
"""The test splits of these sets have no answers, so the validation split is used as the test
split."""

DATA_SETS: Mapping[str, DataSet] = {
    "hotpotqa": DataSet(
        "hotpotqa/hotpot_qa",
        "distractor",
        _OPEN,
        lambda row: [row["answer"]],
        lambda row: list(row["supporting_facts"]["title"]),
    ),
    "2wiki": DataSet(
        "corag/multihopqa",
        "2wikimultihopqa",
        _OPEN,
        lambda row: list(row["answers"]),
        lambda row: [],
        question="query",
    ),
    "musique": DataSet(
        "dgslibisey/MuSiQue",
        None,
        _OPEN,
        lambda row: [row["answer"], *row["answer_aliases"]],
        _paragraphs,
    ),
    "nq": DataSet(
        "google-research-datasets/nq_open",
        None,
        _OPEN,
        lambda row: list(row["answer"]),
        lambda row: [],
    ),
}


def hub_questions(data: str, split: str) -> tuple[Question, ...]:
    """Returns the questions of a split; the supporting titles of each question are in order and
    without repetition.

    Errors: MissingExtra without the extra `tasks`; ConfigError if the hub cannot be read.
    """
    source = DATA_SETS[data]

    def question(row: Any) -> Question:
        titles = tuple(dict.fromkeys(source.titles(row)))
        return Question(row[source.question], tuple(source.answers(row)), titles)

    rows = hub_rows(
        source.path,
        lambda datasets: datasets.load_dataset(
            source.path, source.name, split=source.splits[split]
        ),
        question,
    )
    return tuple(row.value for row in rows)
