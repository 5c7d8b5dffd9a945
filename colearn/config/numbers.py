"""Refuses true, false and texts where a setting is a number; pydantic would convert them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

EXPONENT = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d{1,3}")
"""A number such as 5e-6, which YAML 1.1 reads as text."""
_ROOM = 100
LARGEST = 10**12
"""Bound on every integer of a config; larger ones end in memory errors or endless loops."""


class NumberError(Exception):
    """A value that is no number; the message says what is wrong with it."""


def number_problem(hint: Any, value: Any) -> str | None:
    """Why a value is no number where `hint` wants one; None if it is one, or need not be."""
    options = _options(hint)
    if isinstance(value, bool) or (isinstance(value, str) and not EXPONENT.fullmatch(value)):
        wanted = any(one in (int, float) for one in options)
        if wanted and not any(one in (str, bool, Any) or _is_literal(one) for one in options):
            shown = repr(value)
            cut = shown if len(shown) <= _ROOM else f"{shown[:_ROOM]} ..."
            return f"must be {'a number' if float in options else 'an integer'}, got {cut}"
    elif isinstance(value, int) and int in options and abs(value) > LARGEST:
        return f"must lie in {-LARGEST:,} to {LARGEST:,}"
    elif isinstance(value, list | tuple):
        inner = next((one for one in options if get_origin(one) in (tuple, list)), None)
        hints = [one for one in get_args(inner) if one is not Ellipsis] if inner else []
        for number, one in enumerate(value if hints else ()):
            problem = number_problem(hints[min(number, len(hints) - 1)], one)
            if problem is not None:
                return problem
    return None


def check_numbers(cls: type[BaseModel], data: Any, path: str = "") -> tuple[str, str] | None:
    """The dotted key of the first value that is no number where one is wanted, and why."""
    for key, value in data.items() if isinstance(data, Mapping) else ():
        field = cls.model_fields.get(str(key))
        if field is None:
            continue
        problem = number_problem(field.annotation, value)
        if problem is not None:
            return f"{path}{key}", problem
        for below, section, name in _sections(field.annotation, value):
            wrong = check_numbers(below, section, f"{path}{key}.{name}")
            if wrong is not None:
                return wrong
    return None


def _sections(hint: Any, value: Any) -> Iterator[tuple[type[BaseModel], Any, str]]:
    """Settings classes that a hint allows, with the section of each and its key below `value`."""
    for one in _options(hint):
        if isinstance(one, type) and issubclass(one, BaseModel):
            yield one, value, ""
        elif get_origin(one) is dict and isinstance(value, Mapping):
            inner = get_args(one)[1]
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                for name, section in value.items():
                    yield inner, section, f"{name}."


def _options(hint: Any) -> list[Any]:
    """The types that a hint allows, without Annotated and None."""
    if get_origin(hint) is Annotated:
        return _options(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return [one for part in get_args(hint) for one in _options(part)]
    return [] if hint is type(None) else [hint]


def _is_literal(hint: Any) -> bool:
    return get_origin(hint) is Literal
