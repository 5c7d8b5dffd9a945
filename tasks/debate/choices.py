"""Multiple-choice questions: AQUA-RAT, MMLU and GPQA in their published formats, from the hub or
from a path; and generated sums."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

from colearn.contract.seeding import derive_rng
from colearn.errors import ConfigError
from colearn.text.json_value import read_json

from ..math_duo.data import MathProblem, load_problems
from ..rows import DataRow, HubSplit, check_trained_on, file_rows, file_text, split_rows
from ..search.question import Question

LETTERS = "ABCDE"
_ANSWER = re.compile(
    r"\\(?:boxed|text|textbf|mathrm)\{\(?([A-E])\)?\}\.?|[(\[]([A-E])[)\]](?!\s*(?:or|and|,|/))(?:\s.*)?"
    r"|([A-E])(?:[.):](?!\s*(?:or|and|,|/))(?:\s.*)?)?"
)
"""Pattern of an answer: a letter that is boxed, in brackets, alone or before a punctuation mark.
The option's text may follow, but no second letter."""
_BOXED_TEXT = re.compile(r"\\boxed\{(\\(?:text|textbf|mathrm)\{[^{}]*\})\}\.?")
_SECOND = re.compile(
    r"[(\[][A-E][)\]]|\b[A-E]\)"
    r"|\b(?:or|rather|not|but|is|answer|option|choice):?\s+[A-E]\b(?=[\s.,;*$]*\Z|[.,;])"
)
"""Pattern of a second letter behind the first one."""
_TEST_SHARE = 10
STEM = frozenset(
    {
        *("abstract_algebra", "astronomy", "college_biology", "college_chemistry"),
        *("college_computer_science", "college_mathematics", "college_physics"),
        *("computer_security", "conceptual_physics", "electrical_engineering"),
        *("elementary_mathematics", "high_school_biology", "high_school_chemistry"),
        *("high_school_computer_science", "high_school_mathematics", "high_school_physics"),
        *("high_school_statistics", "machine_learning"),
    }
)
"""The subjects of MMLU that its authors count as STEM."""


@dataclass(frozen=True, slots=True)
class MultipleChoice:
    """A question, its options and the index of the right option."""

    question: str
    options: tuple[str, ...]
    right: int

    def asked(self) -> Question:
        """The question with lettered options and a letter as its answer.

        Errors: ValueError if the question cannot be written in this form.
        """
        if not 2 <= len(self.options) <= len(LETTERS) or self.right not in range(len(self.options)):
            raise ValueError(f"{len(self.options)} options, of which the right one is {self.right}")
        listed = (
            f"{letter}) {option}" for letter, option in zip(LETTERS, self.options, strict=False)
        )
        text = "\n".join([self.question.strip(), *listed, "The answer is a letter."])
        return Question(text, (LETTERS[self.right],))


def letter_of(answer: str) -> str | None:
    """The letter in an answer such as B, (B), B. 12 or \\boxed{B}; None for any other answer, and
    for one that names a second letter."""
    text = answer.strip().strip("*$")
    if boxed := _BOXED_TEXT.fullmatch(text):
        text = boxed[1]
    match = _ANSWER.fullmatch(text)
    if match is None or _SECOND.search(text, match.end(match.lastindex or 0) + 1):
        return None
    return match[match.lastindex or 0]


def aqua(row: Mapping[str, Any]) -> Question:
    """Reads a row of AQUA-RAT, with options such as `A)21` and the right letter in `correct`."""
    options = tuple(re.sub(r"^\s*[A-E]\s*\)\s*", "", option) for option in row["options"])
    return MultipleChoice(row["question"], options, LETTERS.index(row["correct"].strip())).asked()


def mmlu(row: Mapping[str, Any]) -> Question:
    """Reads a row of MMLU on the hub, with `choices` and the index of the right choice in
    `answer`."""
    correct = row["answer"]
    if isinstance(correct, bool) or not isinstance(correct, int):
        raise ValueError(f"answer {correct!r}")
    return MultipleChoice(row["question"], tuple(row["choices"]), correct).asked()


def mmlu_line(cells: Sequence[str]) -> Question:
    """Reads a line of the files that MMLU's authors publish, which have no header: question, A, B,
    C, D, letter."""
    question, *options, correct = cells
    return MultipleChoice(question, tuple(options), LETTERS.index(correct.strip())).asked()


def gpqa(row: Mapping[str, Any]) -> Question:
    """Reads a row of GPQA: the right answer and three wrong ones, in an order that depends on the
    question."""
    question = row["Question"]
    names = ("Correct Answer", *(f"Incorrect Answer {k}" for k in (1, 2, 3)))
    order = derive_rng("gpqa", question).permutation(4)
    options = tuple(row[names[at]].strip() for at in order)
    return MultipleChoice(question, options, [*order].index(0)).asked()


def _stem(row: Mapping[str, Any]) -> Question | None:
    return mmlu(row) if row["subject"] in STEM else None


HUB_SETS = {
    "aqua": HubSplit("deepmind/aqua_rat", "raw", "train", aqua, tests="aqua_test"),
    "aqua_test": HubSplit("deepmind/aqua_rat", "raw", "test", aqua, tests_only=True),
    "mmlu": HubSplit("cais/mmlu", "all", "test", mmlu, tests_only=True),
    "mmlu_stem": HubSplit("cais/mmlu", "all", "test", _stem, tests_only=True),
    "gpqa": HubSplit("Idavidrein/gpqa", "gpqa_diamond", "train", gpqa, tests_only=True),
}
"""Data sets by their names in `task.data` and `task.test_data`."""


def load_choices(
    data: str, test_data: str | None, train: int, test: int, seed: int
) -> dict[str, Sequence[Question]]:
    """The questions by split. Without `test_data`, the test split is the official test split of the
    data, or a tenth of the data if there is none.

    Errors: ConfigError for data that cannot be read; MissingExtra if an extra is needed.
    """
    known = HUB_SETS.get(data)
    if known is not None:
        check_trained_on(data, known.tests_only, "aqua")
        test_data = test_data or known.tests
    if data == "generated":
        problems = load_problems("generated", None, train, test, seed)
        generated = {split: tuple(map(_sum, problems[split])) for split in problems}
        if test_data is None:
            return dict(generated)
        questions = generated["train"]
    else:
        questions = _read(data, "task.data")
    tested = None if test_data is None else _read(test_data, "task.test_data")
    splits = split_rows(
        questions, tested, attrgetter("text"), share=_TEST_SHARE, data=data, kind="question"
    )
    return dict(splits)


def _sum(problem: MathProblem) -> Question:
    """A generated sum with three wrong results near the right one, drawn from the sum alone: a sum
    of one split is in no other split with other options."""
    rng = derive_rng("sum", problem.question)
    wrong = rng.choice([step for step in range(-9, 10) if step], size=3, replace=False)
    values = [int(problem.answer), *(int(problem.answer + step) for step in wrong)]
    order = rng.permutation(4)
    options = tuple(str(values[at]) for at in order)
    return MultipleChoice(problem.question, options, [*order].index(0)).asked()


def _read(data: str, field: str) -> tuple[Question, ...]:
    if data in HUB_SETS:
        questions: Iterable[Question] = (row.value for row in HUB_SETS[data].rows())
    else:
        path = Path(data).expanduser()
        paths = sorted(path.glob("*.csv")) if path.is_dir() else [path]
        if not paths:
            raise ConfigError(f"{field}: {path} holds no .csv file; name MMLU's folder test")
        questions = (question for path in paths for question in _of_file(path, field))
    return tuple(dict.fromkeys(questions))


def _of_file(path: Path, field: str) -> list[Question]:
    choices = ", ".join(("generated", *HUB_SETS))
    text = file_text(path, choices, field=field)
    if path.suffix == ".csv":
        return _of_csv(text, path, field)
    if path.suffix == ".json" and not text.lstrip().startswith("["):
        # the authors of AQUA-RAT give one object per line in a file called .json
        return [
            _made(DataRow(f"line {at} of {path}", line), _of_line, field)
            for at, line in enumerate(text.split("\n"), start=1)
            if line.strip()
        ]
    return [_made(row, _of_row, field) for row in file_rows(path, choices, field=field)]


def _of_csv(text: str, path: Path, field: str) -> list[Question]:
    """Questions of a CSV file. GPQA's file has a header; MMLU's files have none, and their options
    may be equal or empty."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        lines = [(reader.line_num, cells) for cells in reader if cells]
    except csv.Error as error:
        raise ConfigError(
            f"{field}: {path} is not valid CSV in line {reader.line_num} ({error}); fix the quotes"
        ) from None
    if not lines or "Correct Answer" not in lines[0][1]:
        return [
            _made(DataRow(f"line {at} of {path}", cells), mmlu_line, field) for at, cells in lines
        ]
    (_, names), *rest = lines
    for at, cells in rest:
        if len(cells) != len(names):
            raise ConfigError(
                f"{field}: line {at} of {path} has {len(cells)} fields and its header "
                f"{len(names)}; quote fields that hold commas"
            )
    return [
        _made(DataRow(f"line {at} of {path}", dict(zip(names, cells, strict=True))), gpqa, field)
        for at, cells in rest
    ]


def _of_line(line: str) -> Question:
    return _of_row(read_json(line))


def _of_row(row: Mapping[str, Any]) -> Question:
    """Reads a row of AQUA-RAT, MMLU or GPQA; the keys of the row show which data set it is from."""
    if "options" in row:
        return aqua(row)
    return gpqa(row) if "Correct Answer" in row else mmlu(row)


def _made(row: DataRow, read: Callable[[Any], Question], field: str) -> Question:
    try:
        return read(row.value)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(
            f"{field}: {row.where} is no row of AQUA-RAT (question, options, correct), MMLU "
            f"(question, choices, answer; or question,A,B,C,D,letter) or GPQA (Question, Correct "
            f"Answer, Incorrect Answer 1 to 3) ({type(error).__name__}); correct it"
        ) from None
