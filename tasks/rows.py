"""Rows of a task's data: from a JSON or JSON-lines file of the user's, or from a hub data set."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from colearn.errors import ConfigError, DataNotHere, MissingExtra


def hub_rows(name: str, load: Callable[[Any], Iterable[Any]]) -> list[Any]:
    """What `load` reads with the module `datasets` from the data set `name`.

    Errors: MissingExtra without that module; ConfigError where the data set cannot be read.
    """
    try:
        datasets = import_module("datasets")
    except ModuleNotFoundError as error:
        if error.name != "datasets":
            raise
        raise MissingExtra("datasets", "tasks") from None
    try:
        return list(load(datasets))
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:160]
        raise DataNotHere(
            f"task.data: cannot read '{name}' from the hub; check the network, or give the path "
            f"of a .jsonl file ({reason})"
        ) from None


def file_rows(path: Path, choices: str) -> list[Any]:
    """A list in a .json file, else one value for each line; `choices` are the other data there are.

    Errors: ConfigError that names the file and the line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise DataNotHere(
            f"task.data: cannot read {path} ({' '.join(str(error).split())}); give {choices} or "
            "the path of a .jsonl file"
        ) from None
    if path.suffix == ".json":
        try:
            rows = json.loads(text)
        except ValueError:
            raise ConfigError(f"task.data: {path} is no JSON; write a list of objects") from None
        if not isinstance(rows, list):
            raise ConfigError(f"task.data: {path} holds no list; write a list of objects")
        return rows
    rows = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                rows.append(json.loads(line))
            except ValueError:
                raise ConfigError(
                    f"task.data: line {number} of {path} is no JSON; write one object per line"
                ) from None
    return rows
