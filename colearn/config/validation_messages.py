"""Formats validation errors of settings as one line that names the key and the remedy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from colearn.text.validation import Fault, KeyPath, first_fault

from .elsewhere import OF_ALGORITHMS, remedy, settings_class
from .settings import Config
from .strict_section import EACH, NOT_A_NUMBER

_ROOM = 100
"""Maximum number of characters of an input value in an error."""
_LIST = ("list_type", "tuple_type")
_SECTION = ("dict_type", "mapping_type", "model_type")


def one_line(
    error: ValidationError, data: Any, above: str = "", cls: type[BaseModel] | None = None
) -> str:
    """Returns the first validation error of `data` as one line that names the dotted key. `above`
    is a prefix of this key; `cls` is the settings class that validated `data`, if any."""
    path, faults = first_fault(error, data)
    location = dotted_key([*([above] if above else []), *path])
    kind, value = faults[0]["type"], faults[0]["input"]
    if kind == "extra_forbidden":
        meant = _of_algorithm(path, value, cls) or remedy(str(path[-1]), _siblings(path, cls))
        return f"{location}: unknown key; {meant}"
    if kind == NOT_A_NUMBER:
        return f"{location}: {faults[0]['msg']}"
    if kind == "missing" and isinstance(path[-1], int):  # of a list of a fixed length
        entries = dotted_key([*([above] if above else []), *path[:-1]])
        return f"{entries}: must have more entries, got {_shown(value)}"
    if kind == "missing":
        return f"{location}: missing; {_remedy_of_missing(path, data)}"
    listed = any(fault["type"] in _LIST for fault in faults) and isinstance(value, str | int)
    message = " or ".join(dict.fromkeys(map(_message, faults)))
    nested = isinstance(value, Mapping | BaseModel) and kind not in (*_LIST, *_SECTION)
    suffix = "" if nested else f", got {_shown(value)}"
    return f"{location}: {message}{suffix}{f'; write [{_key(str(value))}]' if listed else ''}"


def dotted_key(path: Sequence[int | str]) -> str:
    """Joins the keys and indices that lead to a value into one dotted key; returns `config` if
    there are no keys."""
    return ".".join(_key(str(part)) for part in path) or "config"


def _message(fault: Fault) -> str:
    if fault["type"] in _LIST or fault.get("ctx", {}).get("class") == "Sequence":
        return "must be a list"
    if fault["type"] in _SECTION:
        return "must be a section with keys of its own"
    return fault["msg"].removeprefix("Value error, ").lower()


def _remedy_of_missing(path: KeyPath, data: Any) -> str:
    """Returns the remedy for a missing key; a model beside `*` may be meant to inherit from it."""
    if len(path) == 3 and path[0] == "models" and EACH in data["models"]:
        return f"a model that is named has settings of its own, without those of models.{EACH}"
    return "add it to the config"


def _of_algorithm(path: KeyPath, value: Any, cls: type[BaseModel] | None) -> str | None:
    """Returns the remedy for a top-level key that belongs in the section `algorithm`; None for any
    other key."""
    key = str(path[-1])
    if cls is not Config or len(path) > 1 or key not in OF_ALGORITHMS:
        return None
    below = next(iter(value), None) if isinstance(value, Mapping) else None
    return f"did you mean 'algorithm.{key}{f'.{below}' if below else ''}'?"


def _key(text: str) -> str:
    """Returns a key as written if it is printable and fits on a line; otherwise its repr."""
    return text if text.isprintable() and len(text) <= _ROOM else _shown(text)


def _shown(value: Any) -> str:
    """Returns a value's repr, truncated to fit on a line."""
    text = repr(value)
    return text if len(text) <= _ROOM else f"{text[:_ROOM]} ..."


def _siblings(path: KeyPath, cls: type[BaseModel] | None) -> list[str]:
    fields: Any = cls
    for part in path[:-1]:
        if not (isinstance(fields, type) and issubclass(fields, BaseModel)):
            break
        if part in fields.model_fields:
            fields = settings_class(fields.model_fields[str(part)].annotation)
    if isinstance(fields, type) and issubclass(fields, BaseModel):
        return [field.alias or name for name, field in fields.model_fields.items()]
    return []
