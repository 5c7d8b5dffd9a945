"""Type annotations of settings: the type at a key, and the number of entries of a list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel


def type_at(hint: Any, path: Sequence[int | str]) -> Any:
    """Returns the annotation of the value to which the keys and indices of `path` lead; None if the
    annotation `hint` has no such value."""
    for part in path:
        hint = next(_below(hint, part), None)
    return hint


def fixed_length(hint: Any) -> int | None:
    """Returns the number of entries of `tuple[X, Y]`; None for lists of any length and other
    types."""
    for option in _options(hint):
        entries = get_args(option)
        if get_origin(option) is tuple and entries and entries[-1] is not Ellipsis:
            return len(entries)
    return None


def _below(hint: Any, part: int | str) -> Iterator[Any]:
    for option in _options(hint):
        arguments = get_args(option)
        if isinstance(option, type) and issubclass(option, BaseModel):
            fields = option.model_fields.items()
            yield from (one.annotation for name, one in fields if part in (name, one.alias))
        elif isinstance(part, str):
            yield from arguments[1:2]
        elif fixed_length(option) is not None:
            yield from arguments[part : part + 1]
        else:
            yield from arguments[:1]


def _options(hint: Any) -> Iterator[Any]:
    """The types of a union, without the metadata of `Annotated`."""
    if get_origin(hint) is Annotated:
        yield from _options(get_args(hint)[0])
    elif get_origin(hint) in (Union, UnionType):
        for one in get_args(hint):
            yield from _options(one)
    else:
        yield hint
