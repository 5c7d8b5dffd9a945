"""Builds table rows that document the settings of sections, parts and tasks: description, type,
default and bounds.

`colearn tasks NAME`, `colearn algorithms NAME` and the generated reference show these rows.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import textwrap
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from .elsewhere import settings_class
from .parts import field_default, part_name
from .settings import Config
from .strict_section import Named

_WORDS = {"int": "integer", "float": "number", "str": "text", "bool": "true or false"}


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One documented setting."""

    name: str
    type: str
    default: str
    bounds: str
    meaning: str


def attribute_sentences(cls: type) -> dict[str, str]:
    """Returns the attribute docstrings of a class and its bases, by attribute name."""
    sentences: dict[str, str] = {}
    for owner in reversed(cls.__mro__):
        try:
            source = textwrap.dedent(inspect.getsource(owner))
        except (OSError, TypeError):
            continue
        body = ast.parse(source).body[0]
        statements = body.body if isinstance(body, ast.ClassDef) else []
        for first, second in itertools.pairwise(statements):
            if not (isinstance(first, ast.AnnAssign) and isinstance(first.target, ast.Name)):
                continue
            if isinstance(second, ast.Expr) and isinstance(second.value, ast.Constant):
                sentences[first.target.id] = _flat(str(second.value.value))
    return sentences


def listed_sentences(cls: type) -> dict[str, str]:
    """Returns the entries "- `name`, `other`: sentence" in the docstrings of a class and bases."""
    sentences: dict[str, str] = {}
    for owner in reversed(cls.__mro__):
        text = inspect.cleandoc(owner.__dict__.get("__doc__") or "")
        for entry in re.findall(r"^- ((?:`\w+`(?:, )?)+): (.+(?:\n  .+)*)", text, re.M):
            for name in re.findall(r"`(\w+)`", entry[0]):
                sentences[name] = _flat(entry[1])
    return sentences


def _flat(text: str) -> str:
    return " ".join(text.split())


def described(hint: Any) -> tuple[str, str]:
    """Returns a type in words, and the bounds of its values."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        text, bounds = described(arguments[0])
        return text, _joined(
            bounds, *(bound for argument in arguments[1:] for bound in _bounds(argument))
        )
    if origin is Literal:
        return ", ".join(f"`{argument}`" for argument in arguments), ""
    if origin in (Union, types.UnionType):
        parts = [described(argument) for argument in arguments if argument is not type(None)]
        none = " or none" if type(None) in arguments else ""
        return " or ".join(text for text, _ in parts) + none, _joined(*(b for _, b in parts))
    if origin is tuple and Ellipsis not in arguments:
        text, bounds = described(arguments[0])
        return f"{len(arguments)} of: {text}", bounds
    if origin is not None and issubclass(origin, Mapping):
        text, bounds = described(arguments[1])
        return f"section of {text} by name", bounds
    if origin is not None and issubclass(origin, Sequence):
        text, bounds = described(arguments[0])
        return f"list of {text}", bounds
    if isinstance(hint, type) and (issubclass(hint, BaseModel) or is_dataclass(hint)):
        return "section", ""
    if inspect.isabstract(hint):
        return "section", ""
    return _WORDS.get(getattr(hint, "__name__", str(hint)), getattr(hint, "__name__", "any")), ""


def _bounds(constraint: Any) -> Iterator[str]:
    if isinstance(constraint, FieldInfo):
        for inner in constraint.metadata:
            yield from _bounds(inner)
    for attribute, sign in (("gt", ">"), ("ge", "≥"), ("lt", "<"), ("le", "≤")):
        if getattr(constraint, attribute, None) is not None and not isinstance(
            constraint, FieldInfo
        ):
            yield f"{sign} {getattr(constraint, attribute):g}"


def _joined(*bounds: str) -> str:
    return ", ".join(dict.fromkeys(bound for bound in bounds if bound))


def shown(value: Any) -> str:
    """Returns a default as written in YAML; 'required' for a required setting."""
    if value is MISSING or value is PydanticUndefined or value is inspect.Parameter.empty:
        return "required"
    if isinstance(value, BaseModel):
        return f"`{value.name}`" if isinstance(value, Named) else "see below"
    if is_dataclass(value) and not isinstance(value, type):
        return f"`{type(value).__name__}`"
    if isinstance(value, dict) and any(isinstance(entry, BaseModel) for entry in value.values()):
        return "see below"
    if value is None:
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, list | tuple):
        return f"`[{', '.join(map(str, value))}]`"
    text = str(value).replace("\n", " ")
    if not text:
        return "empty"
    return f"`{text}`" if len(text) <= 60 else f"`{text[:57]}...`"


def model_settings(cls: type[BaseModel]) -> list[SettingRow]:
    """Returns the settings of a typed section of a config."""
    hints = get_type_hints(cls, include_extras=True)
    settings = []
    for name, field in cls.model_fields.items():
        text, bounds = described(hints[name])
        bounds = _joined(
            bounds, *(bound for constraint in field.metadata for bound in _bounds(constraint))
        )
        factory = field.default_factory
        default = factory() if factory is not None else field.default  # type: ignore[call-arg]
        key = field.alias or name
        settings.append(
            SettingRow(key, text, shown(default), bounds, _flat(field.description or ""))
        )
    return settings


def part_settings(cls: type[Any], meanings: Mapping[str, str] | None = None) -> list[SettingRow]:
    """Returns the settings of a part, which are the fields of its dataclass or the arguments of its
    constructor.

    meanings: descriptions, by setting, that replace the descriptions in the source of the class.
    """
    if is_dataclass(cls):
        sentences, hints = attribute_sentences(cls), get_type_hints(cls, include_extras=True)
        pairs = [(field.name, field_default(field)) for field in fields(cls) if field.init]
    else:
        sentences = listed_sentences(cls)
        hints = get_type_hints(cls.__init__, include_extras=True)
        pairs = [
            (name, parameter.default)
            for name, parameter in inspect.signature(cls).parameters.items()
        ]
    return [
        SettingRow(
            name,
            *_of(hints.get(name, Any), default),
            (meanings or {}).get(name, sentences.get(name, "")),
        )
        for name, default in pairs
    ]


def _of(hint: Any, default: Any) -> tuple[str, str, str]:
    text, bounds = described(hint)
    return text, shown(default), bounds


def algorithm_settings(part: Any, prefix: str = "algorithm.") -> Iterator[SettingRow]:
    """Returns the settings of an algorithm and its parts, with their values, by dotted key."""
    sentences, hints = attribute_sentences(type(part)), get_type_hints(type(part))
    for field in fields(part):
        if not field.init:
            continue
        value, key = getattr(part, field.name), f"{prefix}{field.name}"
        if not is_dataclass(value) or isinstance(value, type):
            yield SettingRow(key, *_of(hints[field.name], value), sentences.get(field.name, ""))
            continue
        name = part_name(value)
        meaning = _flat((inspect.getdoc(value) or "").partition("\n\n")[0])
        yield SettingRow(key, "section", f"`{name}`" if name else "see below", "", meaning)
        yield from algorithm_settings(value, f"{key}.")


def sections() -> dict[str, type[BaseModel]]:
    """Returns each section's settings class by dotted path, such as `models.NAME.lora`."""
    by_path: dict[str, type[BaseModel]] = {"": Config}

    def walk(cls: type[BaseModel], path: str) -> None:
        hints = get_type_hints(cls)
        for name in cls.model_fields:
            hint = hints[name]
            inside = settings_class(hint)
            if inside is not None and not issubclass(inside, Named):
                below = f"{path}{name}" + (".NAME" if get_origin(hint) is dict else "")
                if inside not in by_path.values():
                    by_path[below] = inside
                    walk(inside, f"{below}.")

    walk(Config, "")
    return by_path
