"""Items of a gateway task: lines of a JSONL file, or the result of a function."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from colearn import registry
from colearn.contract.held_out import hold_out, row_key
from colearn.errors import ConfigError
from colearn.programs.files.regular import read_regular
from colearn.text.json_value import numbered_lines, read_row


def read_items(source: str, split: str) -> Sequence[Any]:
    """Reads the items of the split `train` or `test`. A fifth of the lines of a file, drawn with a
    fixed seed, is `test`. A single line is in both splits.

    Errors: ConfigError for an unreadable file, or for a line that is not JSON. The message names
    the line.
    """
    if not source.endswith(".jsonl"):
        items: Sequence[Any] = registry.own_function(source, "task.items")(split)
        return items
    path = Path(source)
    try:
        text = read_regular(path).decode()
    except (OSError, UnicodeDecodeError):
        raise ConfigError(f"task.items: cannot read {path} as lines of JSON") from None
    rows = []
    for number, line in numbered_lines(text):
        try:
            rows.append(read_row(line))
        except ValueError as error:
            raise ConfigError(f"task.items: line {number} of {path} {error}") from None
    splits = hold_out(rows, row_key, size=max(1, len(rows) // 5), source=f"task.items: {path}")
    return splits[split]
