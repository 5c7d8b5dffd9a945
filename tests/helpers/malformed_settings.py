"""Wrong values of every setting, made from its own type and bounds."""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import date
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from colearn.config import Config, Named
from colearn.config.suite import SuiteSettings
from colearn.registry import KINDS, Kind, load, names

PARTS: dict[str, Kind] = {
    "rollout": "rollouts",
    "credit": "credits",
    "advantage": "advantages",
    "critic": "critics",
    "loss": "losses",
}
"""Sections of an algorithm, and the kind of part in each."""
UNKNOWN = "xyzzy"
BESIDE = {
    "columns.*.": "columns.*.title=x",
    "anneal.": "anneal.start=1.0",
    "headline.": "headline.metric=solved",
}
"""Settings that a section needs before another one of it is read."""


@dataclass(frozen=True)
class Wrong:
    """A setting, and a value that its type or its bounds exclude."""

    key: str
    value: str
    """As YAML."""
    named: str
    """What the error has to name."""
    pairs: tuple[str, ...] = ()
    """Settings that go before it, as `key=value`."""

    @property
    def sets(self) -> list[str]:
        pairs = (*self.pairs, f"{self.key}={self.value}")
        return [word for pair in pairs for word in ("--set", pair)]

    def __str__(self) -> str:
        return " ".join((*self.pairs, f"{self.key}={self.value[:60]}"))


def wrong_values(hint: Any, bounds: Mapping[str, float], *, finite: bool = True) -> list[str]:
    """Values, as YAML, that a type and its bounds exclude."""
    kinds = _options(hint)
    plain = {kind if isinstance(kind, type) else get_origin(kind) for kind in kinds}
    values: list[str] = []
    if Any in kinds or object in plain:
        return []
    if not plain & {tuple, list} and not any(_is_sequence(kind) for kind in kinds):
        values.append("[1, [2]]")
    if not any(_is_section(kind) for kind in kinds):
        values.append("{xyzzy: 1}")
    if plain <= {int, float}:
        values += ["word", "true", "2024-01-01", ".nan", "0x", "'7'", "[]", "''"]
        values += _beyond(bounds, float in plain)
        if float not in plain:
            values += ["1.5", "1" + "0" * 13, "1e300"]
        if finite:
            values += [".inf", "-.inf"]
    elif plain == {bool}:
        values += ["maybe", "7", ".nan", "-1", "1.5"]
    elif all(get_origin(kind) is Literal for kind in kinds):
        values += [UNKNOWN, "7", "''"]
    elif plain == {date}:
        values += ["word", "2024-13-45", "true"]
    elif str not in plain and not any(_is_named(kind) for kind in kinds):
        values += ["7", "word"] if bool not in plain else []
    for kind in kinds:
        inner = [one for one in get_args(kind) if one is not Ellipsis]
        if plain == {tuple} and inner:
            elements, limits = _annotated(inner[0])
            rest = ", 0.5" * (len(inner) - 1)
            values += [f"[{one}{rest}]" for one in wrong_values(elements, limits) if one != "''"]
    return list(dict.fromkeys(values))


def _beyond(bounds: Mapping[str, float], fractions: bool) -> list[str]:
    step = 0.5 if fractions else 1
    beyond = {"ge": -step, "gt": 0, "le": step, "lt": 0}
    return [f"{value + beyond[name]}" for name, value in bounds.items()]


def _options(hint: Any) -> list[Any]:
    if get_origin(hint) is Annotated:
        return _options(get_args(hint)[0])
    if get_origin(hint) in (Union, types.UnionType):
        return [one for part in get_args(hint) for one in _options(part)]
    return [] if hint is type(None) else [hint]


def _is_sequence(kind: Any) -> bool:
    origin = get_origin(kind) or kind
    return isinstance(origin, type) and issubclass(origin, Sequence) and origin is not str


def _is_section(kind: Any) -> bool:
    origin = get_origin(kind) or kind
    return isinstance(origin, type) and (
        issubclass(origin, BaseModel) or hasattr(origin, "keys") or is_dataclass(origin)
    )


def _is_named(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Named)


def _annotated(hint: Any) -> tuple[Any, dict[str, float]]:
    """A type without its bounds, and these."""
    bounds: dict[str, float] = {}
    for one in _every_argument(hint):
        for part in one.metadata if isinstance(one, FieldInfo) else (one,):
            for name in ("ge", "gt", "le", "lt"):
                if getattr(part, name, None) is not None:
                    bounds[name] = getattr(part, name)
    return hint, bounds


def _every_argument(hint: Any) -> Iterator[Any]:
    if get_origin(hint) is Annotated:
        yield from get_args(hint)[1:]
    for inner in get_args(hint):
        if get_origin(hint) in (Union, types.UnionType):
            yield from _every_argument(inner)


def of_sections(cls: type[BaseModel], above: str = "", *, lists: bool = False) -> Iterator[Wrong]:
    """Of every setting of a typed section, and of those below it; `lists`: in lists, too."""
    for attribute, field in cls.model_fields.items():
        name = field.alias or attribute
        key = f"{above}{name}"
        hint = get_type_hints(cls, include_extras=True)[attribute]
        bounds = _annotated(hint)[1] | _annotated(Annotated[int, *field.metadata, None])[1]
        finite = not any(getattr(one, "allow_inf_nan", None) for one in field.metadata)
        for value in wrong_values(hint, bounds, finite=finite):
            yield Wrong(key, value, name, _beside(key))
        for kind in _options(hint):
            inner = get_args(kind)[1] if get_origin(kind) is dict else kind
            listed = get_args(kind)[0] if get_origin(kind) is tuple else None
            if lists and isinstance(listed, type) and issubclass(listed, BaseModel):
                yield Wrong(f"{key}.{UNKNOWN}", "1", UNKNOWN)
                yield from of_sections(listed, f"{key}.", lists=True)
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                below = f"{key}.*." if inner is not kind else f"{key}."
                if not issubclass(inner, Named):
                    yield Wrong(f"{below}{UNKNOWN}", "1", UNKNOWN)
                    yield from of_sections(inner, below, lists=lists)


def _beside(key: str) -> tuple[str, ...]:
    for section, pair in BESIDE.items():
        above, found, name = key.rpartition(section)
        if found and not pair.startswith(f"{section}{name}="):
            return (f"{above}{pair}",)
    return ()


def of_config() -> Iterator[Wrong]:
    return of_sections(Config)


def of_suite() -> Iterator[Wrong]:
    return (
        one
        for one in of_sections(SuiteSettings)
        if not one.key.startswith("each.") and one.key != f"columns.*.{UNKNOWN}"
    )


def of_algorithms() -> Iterator[Wrong]:
    """Of every algorithm's own settings, and of every part that it can have."""
    for name in names("algorithms"):
        cls = load("algorithms", name)
        for field in fields(cls):
            if field.init and field.name not in (*PARTS, "value_loss"):
                hint = get_type_hints(cls, include_extras=True)[field.name]
                for value in wrong_values(*_annotated(hint))[:4]:
                    pairs = (f"algorithm.name={name}",)
                    yield Wrong(f"algorithm.{field.name}", value, field.name, pairs)
    for section, kind in PARTS.items():
        yield from _of_parts(f"algorithm.{section}", kind)
    yield from _of_parts("cast", "casts")
    for section in ("generators", "learners", "hosts"):
        yield from _of_parts(f"run.{section.removesuffix('s')}", section)  # type: ignore[arg-type]


def _of_parts(section: str, kind: Kind) -> Iterator[Wrong]:
    for name in names(kind):
        cls = load(kind, name)
        if not is_dataclass(cls):
            continue
        pairs = (f"{section}={{name: {name}}}",)
        yield Wrong(f"{section}.{UNKNOWN}", "1", UNKNOWN, pairs)
        hints = get_type_hints(cls, include_extras=True)
        needed = [one.name for one in fields(cls) if one.init and _required(one)]
        for field in fields(cls):
            if field.init and not set(needed) - {field.name}:
                hint, bounds = _annotated(hints[field.name])
                if not any(_is_part(one) for one in _options(hint)):
                    for value in wrong_values(hint, bounds):
                        yield Wrong(f"{section}.{field.name}", value, field.name, pairs)


def _required(field: Any) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _is_part(kind: Any) -> bool:
    return isinstance(kind, type) and (is_dataclass(kind) or inspect.isabstract(kind))


def of_tasks() -> Iterator[Wrong]:
    """Of every argument of every task's constructor: types alone, since tasks hold the bounds."""
    for name in names("tasks"):
        cls = load("tasks", name)
        parameters = inspect.signature(cls).parameters
        hints = get_type_hints(cls if is_dataclass(cls) else cls.__init__, include_extras=True)
        needed = [key for key, one in parameters.items() if one.default is one.empty]
        given = "".join(f", {key}: {_some(hints.get(key))}" for key in needed)
        pairs = (f"task={{name: {name}{given}}}",)
        yield Wrong(f"task.{UNKNOWN}", "1", UNKNOWN, pairs)
        for key in parameters:
            if key in hints:
                for value in wrong_values(*_annotated(hints[key])):
                    yield Wrong(f"task.{key}", value, key, pairs)


def _some(hint: Any) -> str:
    return "[a]" if any(map(_is_sequence, _options(hint))) else "x.yaml"


def every_setting() -> list[Wrong]:
    """All of them, each once."""
    assert PARTS.items() <= {(one.removesuffix("s"), one) for one in KINDS} | {("loss", "losses")}
    made = (*of_config(), *of_algorithms(), *of_tasks())
    return list(dict.fromkeys(made))
