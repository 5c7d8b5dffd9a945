"""Strict CSV parser for user files, as in RFC 4180. A file has a header, and rows with as many
fields as the header."""

from __future__ import annotations

import csv
import io
import re
from typing import Any, NamedTuple

from colearn.text.json_value import read_json

LARGEST_FIELD = 1 << 24
"""Maximum number of characters of a field."""
_FIELD = re.compile(r'(?:"[^"]*+(?:""[^"]*+)*+"|[^",\r\n]*+)(?:,|\r\n?|\n|\Z)')
"""A field and the comma or line end after it. Quotes occur in a quoted field only."""
_LINE_END = re.compile(r"\r\n?|\n")


class CsvTable(NamedTuple):
    """Column names and rows; each row has the number of the line on which the row ends."""

    names: list[str]
    rows: list[tuple[int, list[str]]]


def read_csv(text: str) -> CsvTable:
    """Parse a header and rows; empty lines are dropped.

    Errors: ValueError with a message to append to `line N of FILE` or to the name of the file.
    """
    limit = csv.field_size_limit(LARGEST_FIELD)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        names = next(reader, [])
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            raise ValueError(f"has two columns '{repeated}'; rename one")
        if not all(names):
            raise ValueError("has a column without a name; write a header line")
        rows = []
        for values in reader:
            if values and len(values) != len(names):
                raise ValueError(
                    f"has {len(values)} fields in line {reader.line_num} and {len(names)} in its "
                    "header; quote fields that hold commas"
                )
            if values:
                rows.append((reader.line_num, values))
    except csv.Error as error:
        raise ValueError(
            f"is not valid CSV in line {reader.line_num} ({error}); fix the quotes"
        ) from None
    finally:
        csv.field_size_limit(limit)
    if any('"' in value for values in (names, *(row for _, row in rows)) for value in values):
        _check_quotes(text)
    return CsvTable(names, rows)


def _check_quotes(text: str) -> None:
    """Refuse quotes in a field that does not begin with a quote. Python's parser would treat these
    quotes as text and split the field at commas between them.

    Errors: ValueError that names the line.
    """
    at = 0
    while at < len(text):
        field = _FIELD.match(text, at)
        if field is None:
            line = len(_LINE_END.findall(text, 0, at)) + 1
            raise ValueError(
                f"has quotes in line {line} within a field that does not begin with one; put the "
                "whole field in quotes, and double those within it"
            )
        at = field.end()


def as_objects(table: CsvTable) -> list[tuple[int, dict[str, Any]]]:
    """Rows as mappings by column name. Empty fields are left out, JSON lists are parsed, and other
    fields are texts."""
    return [
        (line, {name: _value(text) for name, text in zip(table.names, values, strict=True) if text})
        for line, values in table.rows
    ]


def _value(text: str) -> Any:
    if text.startswith("[") and text.endswith("]"):
        try:
            return read_json(text)
        except ValueError:
            return text
    return text
