"""Reads data rows from JSONL, JSON, CSV and Parquet files, and from the hub."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from colearn.errors import ConfigError, DataNotHere, reason_of, required
from colearn.registry.given import given, is_given

from ..rows import SUFFIXES as ROWS
from ..rows import DataRow, check_text, csv_table, file_rows, file_text, hub_rows

SUFFIXES = (*ROWS, ".parquet")
SPLIT = "train"
_CHOICES = "a hub name"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSource:
    """A file, a hub data set with its subset and split, or rows passed in by the program."""

    path: str
    subset: str | None = None
    split: str = SPLIT

    @property
    def is_file(self) -> bool:
        return self.path.endswith(SUFFIXES)

    @property
    def name(self) -> str:
        """The path, for messages."""
        return "data" if is_given(self.path) else self.path


def read_rows(source: RowSource) -> list[tuple[str, dict[str, Any]]]:
    """Every row with its location, such as `line 3 of train.jsonl`.

    Errors: ConfigError naming the file and the line; MissingExtra if `datasets` or `pyarrow` is
    needed.
    """
    if is_given(source.path):
        given_rows = enumerate(given(source.path, "task.path"), start=1)
        rows = check_text(
            [DataRow(f"row {number} of data", row) for number, row in given_rows], "task.path"
        )
    elif source.is_file:
        path = Path(source.path).expanduser()
        reader = {".csv": _csv, ".parquet": _parquet}.get(path.suffix)
        if reader is None:
            rows = file_rows(path, _CHOICES, field="task.path")
        else:
            rows = check_text(reader(path), "task.path")
    else:
        rows = hub_rows(
            source.path,
            lambda datasets: datasets.load_dataset(
                source.path, name=source.subset, split=source.split
            ),
            field="task.path",
        )
        check_text(rows, "task.path")
    if not rows:
        raise ConfigError(f"task.path: {source.path} holds no rows; add some")
    for location, row in rows:
        if not isinstance(row, Mapping):
            raise ConfigError(f"task.path: {location} is no object; write one object per row")
    return [(location, dict(row)) for location, row in rows]


def _csv(path: Path) -> list[DataRow]:
    """Rows of a CSV file. A column whose fields are all whole numbers, numbers or truth values is
    converted; an empty field is None. Fields such as `007`, `1_000` and `nan` are text."""
    text = file_text(path, _CHOICES, field="task.path")
    names, rows = csv_table(text, path, field="task.path")
    lines, fields = [line for line, _ in rows], [values for _, values in rows]
    columns = [_typed([values[k] for values in fields]) for k in range(len(names))]
    return [
        DataRow(f"line {line} of {path}", dict(zip(names, row, strict=True)))
        for line, row in zip(lines, zip(*columns, strict=True), strict=True)
    ]


_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,999})")
_NUMBER = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


def _typed(texts: Sequence[str]) -> list[Any]:
    kinds: tuple[Callable[[str], Any], ...] = (_whole, _number, _truth)
    for kind in kinds:
        try:
            return [kind(text) if text else None for text in texts]
        except (KeyError, ValueError):
            continue
    return [text or None for text in texts]


def _whole(text: str) -> int:
    """Parses a whole number. `007` and `1_000` are rejected: a column with such fields stays text,
    as written in the file."""
    if not _WHOLE.fullmatch(text.strip()):
        raise ValueError(text)
    return int(text)


def _number(text: str) -> float:
    """Parses a number. A column with a number too large for a float, or with a whole number that a
    float would round, such as an id, stays text."""
    if not _NUMBER.fullmatch(text.strip()) or not isfinite(float(text)):
        raise ValueError(text)
    if _WHOLE.fullmatch(text.strip()) and int(text) != float(text):
        raise ValueError(text)
    return float(text)


def _truth(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


def _parquet(path: Path) -> list[DataRow]:
    parquet = required("pyarrow.parquet", "tasks")
    try:
        rows = parquet.read_table(path).to_pylist()
    except (OSError, ValueError) as error:  # pyarrow's own errors derive from these
        raise DataNotHere(
            f"task.path: cannot read {path} ({reason_of(error)}); give {_CHOICES} or another file"
        ) from None
    return [DataRow(f"row {number} of {path}", row) for number, row in enumerate(rows, start=1)]
