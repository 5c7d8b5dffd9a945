"""Where the texts of the writing tasks come from: packaged, generated, a file, or the hub."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from colearn.errors import ConfigError, MissingExtra

from .grammar import Sentences, generate

TRAIN, TEST = 1000, 100
"""The paper's slices, [0:1000] and [1000:1100] (C.1)."""
GENERATED = {"train": 256, "test": 64}

_FOLDER = Path(__file__).parent / "texts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A task's texts under each value of `data`."""

    file: str
    """The packaged file's name."""
    sentences: Sentences
    """The grammar of 'generated'."""
    hub: str
    """The data set's name on the hub, whose split 'train' is cut into the paper's slices."""
    field: str
    """The column of the hub's and the key of a file's rows that holds the text."""


def load_texts(source: Source, data: str, field: str | None) -> dict[str, tuple[str, ...]]:
    """The texts by split, in a fixed order, none of them blank.

    Errors: ConfigError for a file or a data set that cannot be read or lacks the field;
    MissingExtra where 'hub' needs `datasets`.
    """
    key = source.field if field is None else field
    if data == "packaged":
        packaged = json.loads((_FOLDER / source.file).read_text(encoding="utf-8"))
        return {split: tuple(packaged[split]) for split in ("train", "test")}
    if data == "generated":
        return {
            split: tuple(generate(source.sentences, split, count))
            for split, count in GENERATED.items()
        }
    if data == "hub":
        texts = _texts(_hub_rows(source.hub, TRAIN + TEST), key, source.hub)
        held_out = TEST
    else:
        texts = _texts(_file_rows(Path(data).expanduser()), key, data)
        held_out = max(len(texts) // 10, 1)
    if len(texts) <= held_out:
        raise ConfigError(
            f"task.data: {data} has too few texts ({len(texts)}): the last {held_out} are the test "
            "split; add rows"
        )
    return {"train": tuple(texts[:-held_out]), "test": tuple(texts[-held_out:])}


def _texts(rows: Iterable[Any], key: str, name: str) -> list[str]:
    texts = []
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, Mapping) or key not in row:
            found = (
                f"has {', '.join(map(str, row))}" if isinstance(row, Mapping) else "is no object"
            )
            raise ConfigError(f"task.field: row {number} of {name} {found}; '{key}' is missing")
        text = row[key]
        if not isinstance(text, str) or not text.strip():
            raise ConfigError(f"task.data: '{key}' of row {number} of {name} is no text; mend it")
        texts.append(text)
    return texts


def _hub_rows(name: str, count: int) -> list[Any]:
    """The first rows, streamed: the rest of the data set is not downloaded."""
    try:
        datasets = import_module("datasets")
    except ModuleNotFoundError as error:
        if error.name != "datasets":
            raise
        raise MissingExtra("datasets", "tasks") from None
    try:
        return list(islice(datasets.load_dataset(name, split="train", streaming=True), count))
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:160]
        raise ConfigError(
            f"task.data: cannot read '{name}' from the hub; check the network, or give the path "
            f"of a .jsonl file ({reason})"
        ) from None


def _file_rows(path: Path) -> list[Any]:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"task.data: cannot read {path} ({' '.join(str(error).split())}); give packaged, "
            "generated, hub or the path of a .jsonl file"
        ) from None
    rows = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                rows.append(json.loads(line))
            except ValueError:
                raise ConfigError(
                    f"task.data: line {number} of {path} is no JSON; write one object per line"
                ) from None
    return rows
