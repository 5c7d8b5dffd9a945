"""Loads the texts of the writing tasks: packaged, generated, from a file, or from the hub."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from colearn.errors import ConfigError

from ..rows import DataRow, file_rows, hub_rows, split_rows
from .grammar import Sentences, generate

TRAIN, TEST = 1000, 100
"""The paper's slices, [0:1000] and [1000:1100] (C.1)."""
GENERATED = {"train": 256, "test": 64}
FILE_SHARE = 10
"""Of a file's texts, one in FILE_SHARE is in the test split."""

_FOLDER = Path(__file__).parent / "texts"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSource:
    """The sources of a task's texts for each value of `data`."""

    file: str
    """The packaged file's name."""
    sentences: Sentences
    """The grammar from which 'generated' texts are drawn."""
    hub: str
    """The data set's name on the hub; its split 'train' is cut into the paper's slices."""
    field: str
    """The column of the hub's data set, or the key of a file's rows, that holds the text."""


def load_texts(source: TextSource, data: str, field: str | None) -> dict[str, tuple[str, ...]]:
    """Returns the texts by split, in a fixed order; no text is blank.

    Errors: ConfigError for a file or a data set that cannot be read or lacks the field;
    MissingExtra if 'hub' needs `datasets`.
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
        texts = _texts(hub_rows(source.hub, partial(_first_rows, source.hub)), key)
        if len(texts) <= TEST:
            raise ConfigError(
                f"task.data: {data} has too few texts ({len(texts)}): the last {TEST} are the test "
                "split; add rows"
            )
        return {"train": tuple(texts[:-TEST]), "test": tuple(texts[-TEST:])}
    texts = _texts(file_rows(Path(data).expanduser(), "packaged, generated, hub"), key)
    return split_rows(texts, None, str, share=FILE_SHARE, data=data, kind="text")


def _texts(rows: Iterable[DataRow], key: str) -> list[str]:
    texts = []
    for location, row in rows:
        if not isinstance(row, Mapping) or key not in row:
            fault = (
                f"has {', '.join(map(str, row))}" if isinstance(row, Mapping) else "is no object"
            )
            raise ConfigError(f"task.field: {location} {fault}; '{key}' is missing")
        text = row[key]
        if not isinstance(text, str) or not text.strip():
            raise ConfigError(f"task.data: '{key}' of {location} is no text; fix it")
        texts.append(text)
    return texts


def _first_rows(name: str, datasets: Any) -> Iterable[Any]:
    """Returns the first rows; they are streamed, so the rest of the data set is not downloaded."""
    return islice(datasets.load_dataset(name, split="train", streaming=True), TRAIN + TEST)
