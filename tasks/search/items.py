"""Loads questions: generated, packaged, from a file, or from the hub."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

from colearn.contract.held_out import separate
from colearn.errors import ConfigError
from colearn.programs.workflow.qa import Corpus, Folder, Passage, Passages

from ..rows import SUFFIXES, DataRow, file_rows, split_rows
from .hub import DATA_SETS, hub_questions
from .question import Question
from .world import World

SOURCES = ("generated", "packaged", *DATA_SETS)
_PACKAGED = Path(__file__).parent / "packaged.json"
_TEST_SHARE = 5
"""Of a file's questions, one in this number is held out."""


def load_questions(
    data: str, world: World, kinds: Sequence[str]
) -> tuple[Mapping[str, Sequence[Question]], Corpus | None]:
    """Questions by split, and the corpus that comes with them (None if the user must provide one).

    Errors: ConfigError for an unknown source or a row that is not a question; MissingExtra for a
    hub data set without the extra `tasks`.
    """
    if data == "generated":
        generated = {
            split: tuple(
                Question(fact.text, (fact.answer,), fact.titles)
                for fact in world.questions(split, tuple(kinds))
            )
            for split in ("train", "test")
        }
        return generated, world
    if data == "packaged":
        packaged = json.loads(_PACKAGED.read_text(encoding="utf-8"))
        passages = tuple(Passage(row["title"], row["text"]) for row in packaged["passages"])
        splits = {
            split: _questions(DataRow(f"{split} of {_PACKAGED}", row) for row in packaged[split])
            for split in ("train", "test")
        }
        return splits, Passages(passages)
    if data in DATA_SETS:
        train, test = (hub_questions(data, split) for split in ("train", "test"))
        return separate(train, test, attrgetter("text"), source=f"task.data: {data}"), None
    if Path(data).suffix in SUFFIXES:
        rows = _file_questions(data)
        splits = split_rows(
            rows, None, attrgetter("text"), share=_TEST_SHARE, data=data, kind="question"
        )
        return splits, None
    raise ConfigError(
        f"task.data: unknown value {data!r}; known: {', '.join(SOURCES)}, or the path of a .jsonl "
        "or .csv file with question and answers"
    )


def load_tested(data: str, world: World, kinds: Sequence[str]) -> tuple[Question, ...]:
    """The test questions of a source: its test split, or all rows of a file.

    Errors: as `load_questions`.
    """
    if Path(data).suffix in SUFFIXES:
        return tuple(dict.fromkeys(_file_questions(data)))
    splits, _ = load_questions(data, world, kinds)
    return tuple(splits["test"])


def load_corpus(path: str | None, packaged: Corpus | None, data: str) -> Corpus:
    """The corpus in the user's folder, or the corpus that comes with the questions.

    Errors: ConfigError if neither corpus exists.
    """
    if path is not None:
        return Folder(path)
    if packaged is None:
        raise ConfigError(
            f"task.corpus: '{data}' comes without one; give a folder of .jsonl, .txt or .md files"
        )
    return packaged


def _file_questions(data: str) -> tuple[Question, ...]:
    return _questions(file_rows(Path(data), ", ".join(SOURCES)))


def _questions(rows: Iterable[DataRow]) -> tuple[Question, ...]:
    return tuple(_question(row.value, row.where) for row in rows)


def _question(row: Any, location: str) -> Question:
    match row:
        case {"question": str(text), "answers": [_, *_] as answers}:
            titles = row.get("titles", [])
            if isinstance(titles, list) and all(isinstance(t, str) for t in (*answers, *titles)):
                if not all(map(str.strip, answers)):
                    raise ConfigError(
                        f"task.data: {location} has an empty answer, which no agent can give; "
                        "remove it"
                    )
                return Question(text, tuple(answers), tuple(titles))
    raise ConfigError(
        f'task.data: {location} is no question; write {{"question": "...", "answers": ["..."]}}, '
        'beside them maybe "titles": ["..."]'
    )
