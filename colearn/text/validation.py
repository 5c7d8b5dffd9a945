"""Locates the invalid value of a pydantic validation error, and text that is no Unicode."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from .printable import is_unicode

if TYPE_CHECKING:
    from pydantic import ValidationError

KeyPath: TypeAlias = tuple[int | str, ...]
Fault: TypeAlias = Mapping[str, Any]
"""An entry of `ValidationError.errors()`."""


def first_fault(error: ValidationError, data: Any) -> tuple[KeyPath, Sequence[Fault]]:
    """Finds the first invalid value in `data`, the data that were validated. Returns the keys and
    indices that lead to the value, and the value's errors. For a union, there is one error for each
    type that the union allows.

    In pydantic, the location of an error also contains the types of a union, such as `str`, which
    are not keys. Only the types with the deepest fault count, since the data fit these types best.
    If a key is missing and an unknown key is present beside it, the unknown key is reported, since
    it may be a misspelling.
    """
    first, *others = errors = error.errors(include_url=False)
    if first["type"] == "missing":
        siblings = (fault for fault in others if fault["loc"][:-1] == first["loc"][:-1])
        first = next((fault for fault in siblings if fault["type"] == "extra_forbidden"), first)
    path, union = _located(first, data)
    if union is None:
        return path, [first]
    located = [
        (_located(fault, data)[0], fault)
        for fault in errors
        if fault["loc"][:union] == first["loc"][:union]
    ]
    deepest = max(len(path) for path, _ in located)
    path = next(path for path, _ in located if len(path) == deepest)
    return path, [fault for place, fault in located if place == path]


def first_surrogate(data: Any) -> KeyPath | None:
    """Returns the keys and indices that lead to the first text with half of a surrogate pair; None
    if there is no such text. The text may itself be a key."""
    if isinstance(data, str):
        return None if is_unicode(data) else ()
    if isinstance(data, Mapping):
        entries: Iterable[tuple[Any, Any]] = data.items()
    elif isinstance(data, list | tuple):
        entries = enumerate(data)
    else:
        return None
    for key, value in entries:
        below = () if first_surrogate(key) == () else first_surrogate(value)
        if below is not None:
            return (key, *below)
    return None


def _located(error: Fault, data: Any) -> tuple[KeyPath, int | None]:
    """Return the parts of an error's location that are keys or indices of `data`, and the position
    of the first part that is neither."""
    path: list[int | str] = []
    union = None
    value = data
    for position, part in enumerate(error["loc"]):
        last = position == len(error["loc"]) - 1
        if last and error["type"] == "missing":
            path.append(part)
            continue
        # an error of the section itself ends in a kind, even if a key has that kind's name
        if not _has(value, part) or (last and value is error["input"]):
            union = position if union is None else union
            continue
        path.append(part)
        value = value[part]
    return tuple(path), union


def _has(value: Any, part: int | str) -> bool:
    """Whether `value` has a part of a location as a key or an index."""
    if isinstance(value, Mapping):
        return part in value
    return isinstance(value, list | tuple) and isinstance(part, int) and part < len(value)
