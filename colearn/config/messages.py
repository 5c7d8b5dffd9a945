"""Validation errors of settings as one line that names the key and the remedy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from colearn.text.validation import Fault, KeyPath, first_fault

from .renamed import remedy
from .settings import Config

_ROOM = 100
"""Maximum number of characters of an input value in an error."""
_LIST = ("list_type", "tuple_type")
_SECTION = ("dict_type", "mapping_type", "model_type")


def one_line(
    error: ValidationError, given: Any, above: str = "", cls: type[BaseModel] | None = None
) -> str:
    """The first validation error of `given` as one line with its dotted key below `above`; `cls` is
    the settings class that was read, if it was one."""
    path, faults = first_fault(error, given)
    where = ".".join([above] * bool(above) + [_key(str(part)) for part in path]) or "config"
    kind, value = faults[0]["type"], faults[0]["input"]
    if kind == "extra_forbidden":
        hint = _elsewhere(path, value, cls) or remedy(str(path[-1]), _siblings(path, cls))
        return f"{where}: unknown key; {hint}"
    if kind == "missing":
        return f"{where}: missing; add it to the config"
    listed = any(one["type"] in _LIST for one in faults) and isinstance(value, str | int | float)
    message = " or ".join(dict.fromkeys(map(_message, faults)))
    nested = isinstance(value, Mapping | BaseModel) and kind not in (*_LIST, *_SECTION)
    got = "" if nested else f", got {_shown(value)}"
    return f"{where}: {message}{got}{f'; write [{_key(str(value))}]' if listed else ''}"


def _message(fault: Fault) -> str:
    if fault["type"] in _LIST:
        return "must be a list"
    if fault["type"] in _SECTION:
        return "must be a section with keys of its own"
    return fault["msg"].removeprefix("Value error, ").lower()


_OF_ALGORITHMS = ("rollout", "credit", "advantage", "loss", "value_loss", "discount")
"""Settings of an algorithm, which belong in the section `algorithm`."""


def _elsewhere(path: KeyPath, given: Any, cls: type[BaseModel] | None) -> str | None:
    """The section that a key at the top level belongs to, if only one has it."""
    key = str(path[-1])
    if cls is not Config or len(path) > 1:
        return None
    if key in _OF_ALGORITHMS:
        below = next(iter(given), None) if isinstance(given, Mapping) else None
        return f"did you mean 'algorithm.{key}{f'.{below}' if below else ''}'?"
    owners = [
        name
        for name, field in Config.model_fields.items()
        if isinstance(field.annotation, type)
        and issubclass(field.annotation, BaseModel)
        and key in field.annotation.model_fields
    ]
    return f"did you mean '{owners[0]}.{key}'?" if len(owners) == 1 else None


def _key(text: str) -> str:
    """A key as written in the file, if it fits a line and is printable."""
    return text if text.isprintable() and len(text) <= _ROOM else _shown(text)


def _shown(value: Any) -> str:
    """A value's repr, truncated to fit a line."""
    text = repr(value)
    return text if len(text) <= _ROOM else f"{text[:_ROOM]} ..."


def _siblings(path: KeyPath, cls: type[BaseModel] | None) -> list[str]:
    fields: Any = cls
    for part in path[:-1]:
        if not (isinstance(fields, type) and issubclass(fields, BaseModel)):
            break
        if part in fields.model_fields:
            fields = _settings_class(fields.model_fields[str(part)].annotation)
    if isinstance(fields, type) and issubclass(fields, BaseModel):
        return [field.alias or name for name, field in fields.model_fields.items()]
    return []


def _settings_class(annotation: Any) -> Any:
    """The settings class inside `X | None` or `dict[str, X]`, if there is one."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        settings_class = _settings_class(argument)
        if settings_class is not None:
            return settings_class
    return None
