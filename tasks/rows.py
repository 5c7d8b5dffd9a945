"""Reads data rows from a JSON-lines, JSON or CSV file, or from a hub data set."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from colearn.contract.held_out import hold_out, separate
from colearn.errors import ConfigError, DataNotHere, reason_of, required
from colearn.programs.files.regular import read_regular
from colearn.text.csv_table import CsvTable, as_objects, read_csv
from colearn.text.json_value import numbered_lines, read_row
from colearn.text.media import media_problem

SUFFIXES = (".jsonl", ".json", ".csv")
"""Suffixes of files that `file_rows` reads."""
Row = TypeVar("Row")


class DataRow(NamedTuple):
    """A row and its location, such as `line 3 of mine.jsonl` or `row 3 of openai/gsm8k`."""

    where: str
    value: Any


def _as_it_is(row: Any) -> Any:
    return row


def hub_rows(
    name: str,
    load: Callable[[Any], Iterable[Any]],
    read: Callable[[Any], Any] = _as_it_is,
    *,
    field: str = "task.data",
) -> list[DataRow]:
    """Loads the data set `name` with `load(datasets)` and converts each row with `read`; rows for
    which `read` returns None are dropped. Errors name the setting `field`.

    Errors: MissingExtra without `datasets`; ConfigError if the data set, or a row of it, cannot be
    read.
    """
    datasets = required("datasets", "tasks")
    try:
        records = list(load(datasets))
    except (OSError, ValueError) as error:
        raise DataNotHere(
            f"{field}: cannot read '{name}' from the hub; check the network, or give the path "
            f"of a .jsonl file ({reason_of(error)})"
        ) from None
    rows = (DataRow(f"row {number} of {name}", row) for number, row in enumerate(records, start=1))
    converted = (DataRow(row.where, _made(row, read)) for row in rows)
    return [row for row in converted if row.value is not None]


def split_rows(
    rows: Sequence[Row],
    tested: Sequence[Row] | None,
    key: Callable[[Row], Hashable],
    *,
    share: int,
    data: str,
    kind: str,
) -> dict[str, tuple[Row, ...]]:
    """Splits the rows of `task.data`: `tested` are the held-out rows, or one row in `share` is held
    out if this is None. Rows with the same key are in the same split.

    Errors: ConfigError that names the `kind` of row if a split is empty.
    """
    source = f"task.data: {data}"
    if tested is None:
        if len(rows) < 2:
            raise ConfigError(f"task.data: {data} has {len(rows)} {kind}(s); add some, 2 at least")
        return hold_out(rows, key, size=max(len(rows) // share, 1), source=source)
    splits = separate(rows, tested, key, source=source)
    for split, subset in splits.items():
        if not subset:
            raise ConfigError(f"task.data: {data} leaves no {kind} to {split}; add some")
    return splits


def check_trained_on(data: str, tests_only: bool, other: str) -> None:
    """Errors: ConfigError if a test split is named as the training data."""
    if tests_only:
        raise ConfigError(
            f"task.data: '{data}' is a test split; set task.test_data to it, and task.data to what "
            f"is trained on, such as {other}"
        )


def _made(row: DataRow, read: Callable[[Any], Any]) -> Any:
    try:
        return read(row.value)
    except (LookupError, TypeError, ValueError, AttributeError, SyntaxError, RecursionError) as e:
        raise ConfigError(
            f"task.data: {row.where} is not as this data set was ({type(e).__name__}: "
            f"{reason_of(e)}); give the path of a .jsonl file"
        ) from None


def file_rows(path: Path, choices: str, *, field: str = "task.data") -> list[DataRow]:
    """Reads a list from a .json file, rows by column from a .csv file, and one value per line from
    any other file. Error messages end with `choices`, the names of the other available data.

    Errors: ConfigError that names the file and the line, for text that is not JSON or CSV, is
    nested too deeply, contains half of a surrogate pair, or holds an image.
    """
    text = file_text(path, choices, field=field)
    if path.suffix == ".csv":
        objects = as_objects(csv_table(text, path, field=field))
        rows = [DataRow(f"line {line} of {path}", row) for line, row in objects]
        return check_text(rows, field)
    if path.suffix == ".json":
        try:
            content = read_row(text)
        except ValueError as error:
            raise ConfigError(f"{field}: {path} {error}; write a list of objects") from None
        if not isinstance(content, list):
            raise ConfigError(f"{field}: {path} holds no list; write a list of objects")
        rows = [DataRow(f"row {number} of {path}", row) for number, row in enumerate(content, 1)]
        return check_text(rows, field)
    rows = []
    for number, line in numbered_lines(text):
        try:
            rows.append(DataRow(f"line {number} of {path}", read_row(line)))
        except ValueError as error:
            raise ConfigError(
                f"{field}: line {number} of {path} {error}; write one object per line"
            ) from None
    return check_text(rows, field)


def check_text(rows: list[DataRow], field: str) -> list[DataRow]:
    """Returns the rows. Errors: ConfigError naming the first row with an image, audio or video."""
    for where, row in rows:
        if (problem := media_problem(row)) is not None:
            raise ConfigError(f"{field}: {where} {problem}")
    return rows


def file_text(path: Path, choices: str, *, field: str) -> str:
    """The text of a file; error messages end with `choices`, the names of the other available data.

    Errors: DataNotHere for a file that cannot be read; ConfigError for a file that is not UTF-8.
    """
    try:
        return read_regular(path).decode("utf-8-sig")
    except OSError as error:
        raise DataNotHere(
            f"{field}: cannot read {path} ({reason_of(error)}); give {choices} or "
            "the path of a .jsonl file"
        ) from None
    except ValueError as error:
        raise ConfigError(
            f"{field}: {path} is not UTF-8 ({reason_of(error)}); save it as UTF-8"
        ) from None


def csv_table(text: str, path: Path, *, field: str) -> CsvTable:
    """Errors: ConfigError that names the file and the fault."""
    try:
        return read_csv(text)
    except ValueError as error:
        raise ConfigError(f"{field}: {path} {error}") from None


@dataclass(frozen=True, slots=True)
class HubSplit:
    """A split of a data set on the hub, or all of its splits, with the function that converts the
    rows."""

    path: str
    config: str | None
    split: str | None
    """None: all splits that the data set has, in the order train, test."""
    row: Callable[[Any], Any]
    """Converts a row; a row for which it returns None is dropped."""
    tests: str | None = None
    """Name of the data set's official test split."""
    tests_only: bool = False
    """Whether this is only a test split, which cannot be trained on."""

    def rows(self) -> list[DataRow]:
        """Errors: ConfigError if the split cannot be read; MissingExtra without `datasets`."""
        names = tuple(filter(None, (self.path, self.config)))

        def load(datasets: Any) -> Iterable[Any]:
            if self.split is not None:
                chosen: Iterable[Any] = datasets.load_dataset(*names, split=self.split)
                return chosen
            splits = datasets.load_dataset(*names)
            return [row for split in sorted(splits, reverse=True) for row in splits[split]]

        return hub_rows(self.path, load, self.row)
