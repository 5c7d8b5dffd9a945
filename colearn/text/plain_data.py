"""Conversion of a Python value to JSON's types, in an order that no process changes."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python


def plain_data(value: Any) -> Any:
    """Returns `value` as JSON's types; infinities and NaN stay floats. A set becomes a sorted list,
    since the order of a set of strings differs between processes.

    Errors: ValueError for a value without a JSON form.
    """
    return to_jsonable_python(in_order(value), inf_nan_mode="constants")


def in_order(value: Any) -> Any:
    """Returns a value in which every set is a sorted list; elements of different types are sorted
    by type first. Dictionaries, sequences, dataclasses and pydantic's models become dictionaries
    and lists; other values stay as they are."""
    if isinstance(value, AbstractSet) and not isinstance(value, Mapping):
        by_type: dict[str, list[Any]] = {}
        for element in map(in_order, value):
            by_type.setdefault(type(element).__name__, []).append(element)
        return [element for name in sorted(by_type) for element in _sorted(by_type[name])]
    if isinstance(value, dict):
        return {key: in_order(entry) for key, entry in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(in_order, value))
    if isinstance(value, list | tuple | deque):
        return list(map(in_order, value))
    if isinstance(value, BaseModel):
        return in_order(value.model_dump())
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: in_order(getattr(value, field.name)) for field in fields(value)}
    return value


def _sorted(elements: list[Any]) -> list[Any]:
    try:
        return sorted(elements)
    except TypeError:  # elements that do not compare
        return sorted(elements, key=repr)
