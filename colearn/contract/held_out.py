"""Splits rows of data into rows to train on and rows that are held out for evaluations."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from colearn.text.notes import note_once

from .seeding import derive_rng

Row = TypeVar("Row")


def row_key(value: Any) -> Hashable:
    """A key of a row or of a text: equal for rows with the same fields and values, in any order of
    the fields, whose texts differ at most in spaces and in the composition of their characters."""
    if isinstance(value, str):
        return " ".join(unicodedata.normalize("NFC", value).split())
    if isinstance(value, Mapping):
        return frozenset((name, row_key(entry)) for name, entry in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(row_key, value))
    if isinstance(value, frozenset):
        return frozenset(map(row_key, value))
    if is_dataclass(value) and not isinstance(value, type):
        return tuple(row_key(getattr(value, field.name)) for field in fields(value))
    return type(value), repr(value)


def hold_out(
    rows: Sequence[Row], key: Callable[[Row], Any], *, size: int, source: str
) -> dict[str, tuple[Row, ...]]:
    """Returns the splits `train` and `test`, and prints their sizes once per process.

    The held-out rows are drawn with a fixed seed, so that every run and every evaluation holds out
    the same rows of the same data. They are in the order of the draw, so that their first rows are
    a random sample, too. Rows with the same key (`row_key`) are in the same split, and about `size`
    rows are held out: fewer if a repeated row would exceed `size`. If all rows have the same key,
    `size` rows are drawn, and the line says that they are trained on, too; so is an only row.

    source: the setting and the data, for the printed line, such as `task.data: mine.jsonl`.
    """
    keys = [row_key(key(row)) for row in rows]
    repeats = Counter(keys)
    order = derive_rng("split").permutation(len(rows)).tolist()
    held = order[:size] if len(repeats) == 1 else _drawn(keys, repeats, order, size)
    inside = set(held)
    train = tuple(row for place, row in enumerate(rows) if place not in inside) or tuple(rows)
    if len(rows) == 1:
        remark = "; it is the only row, so it is trained on, too"
    elif len(repeats) == 1:
        remark = "; all rows are alike, so those held out are trained on, too"
    elif len(repeats) < len(rows):
        remark = f"; {len(rows) - len(repeats)} repeat another row and are in its split"
    else:
        remark = ""
    note_once(
        f"{source}: {len(train)} rows to train on, {len(held)} held out, drawn with a fixed seed"
        + remark
    )
    return {"train": train, "test": tuple(rows[place] for place in held)}


def _drawn(
    keys: Sequence[Hashable], repeats: Mapping[Hashable, int], order: Sequence[int], size: int
) -> list[int]:
    """Places of the held-out rows, in the order of the draw: all rows of the first keys whose rows
    fit into `size`, or of the rarest key if no key's rows fit."""
    chosen: set[Hashable] = set()
    count = 0
    for name in dict.fromkeys(keys[place] for place in order):
        if count + repeats[name] <= size:
            chosen.add(name)
            count += repeats[name]
    if not chosen:
        chosen.add(min(repeats, key=repeats.__getitem__))
    return [place for place in order if keys[place] in chosen]


def separate(
    train: Sequence[Row], test: Sequence[Row], key: Callable[[Row], Any], *, source: str
) -> dict[str, tuple[Row, ...]]:
    """Returns the splits `train` and `test`, where `train` is without the rows whose key is also in
    `test`. Prints the sizes once per process; `source` is as in `hold_out`."""
    tested = {row_key(key(row)) for row in test}
    kept = tuple(row for row in train if row_key(key(row)) not in tested)
    dropped = len(train) - len(kept)
    note_once(
        f"{source}: {len(kept)} rows to train on, {len(test)} held out"
        + (f"; {dropped} rows are not trained on, because they are held out" if dropped else "")
    )
    return {"train": kept, "test": tuple(test)}


def note_overlap(
    train: Sequence[Row], test: Sequence[Row], key: Callable[[Row], Any], *, source: str
) -> None:
    """Prints once per process the sizes of two splits that the user chose, and how many held-out
    rows have a key that is also in `train`; `source` is as in `hold_out`."""
    trained = {row_key(key(row)) for row in train}
    known = sum(row_key(key(row)) in trained for row in test)
    note_once(
        f"{source}: {len(train)} rows to train on, {len(test)} held out"
        + (
            f"; {known} of those held out are trained on, too: remove them from one"
            if known
            else ""
        )
    )
