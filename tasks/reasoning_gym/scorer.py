"""Entries of a data set and scores of answers, by the package in a separate process.

Several data sets draw from Python sets of texts, whose order differs between processes unless the
seed of Python's hashes is fixed. Entries are therefore made in a process with a fixed one.
"""

from __future__ import annotations

import base64
import pickle
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..answer_process import AnswerProcess

SCRIPT = Path(__file__).with_name("scorer_process.py")

Source = tuple[str, str, int, int]
"""Arguments of `data_set`."""


@lru_cache(maxsize=16)
def entries(source: Source) -> tuple[dict[str, Any], ...]:
    """All entries of the data set, the same in every process."""
    return tuple(pickle.loads(base64.b64decode(_process(source).ask(None))))


def score(source: Source, number: int, answer: str | None) -> float:
    """The package's score of an answer to an entry. 0 for an answer at which the grader raises an
    exception or takes more than 4 s of processor time."""
    entry = entries(source)[number]
    payload = base64.b64encode(pickle.dumps(entry)).decode()
    scored = _process(source).ask([payload, answer])
    return 0.0 if scored is None else float(scored)


@lru_cache(maxsize=16)
def _process(source: Source) -> AnswerProcess:
    return AnswerProcess(SCRIPT, [str(part) for part in source], {"PYTHONHASHSEED": "0"})
