"""Builds a frozen dataclass from nested settings; the dataclass's fields may be parts that have
settings themselves.

    loss: {clip: 0.2}                      # the default part with another clip
    credit: {name: mixed, alpha: 0.5}      # another part, by its name
    credit: mixed                          # with its defaults
    critic.value: q                        # likewise, as a dotted key

`colearn.registry` resolves names. Parts do not know their configuration keys. An error of a part
therefore names only the part's field, and this module prepends the path to that field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from typing import Any, TypeVar, get_args, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from colearn import contract, registry
from colearn.errors import ConfigError
from colearn.registry import Kind, load, name_of, names

from .elsewhere import remedy
from .strict_section import Named, NumberError, number_problem
from .validation_messages import one_line

Built = TypeVar("Built")
_FINITE = ConfigDict(allow_inf_nan=False)

_NO_PARTS = ("algorithms", "programs", "tasks", "trackers", "wrappers")
KINDS: dict[type, Kind] = {
    getattr(contract, entry.base.partition(":")[2]): kind
    for kind, entry in registry.KINDS.items()
    if kind not in _NO_PARTS
}
"""Interfaces whose implementations may be fields of an algorithm or a section."""


def build_dataclass(cls: type[Built], settings: Mapping[str, Any]) -> Built:
    """Returns an instance of `cls`; fields that `settings` omits have their default values.

    Errors: ConfigError that names the dotted key below `cls` and the remedy.
    """
    values = _values(cls, settings, None)  # first: a missing setting may be the misspelt one
    missing = [
        field.name
        for field in fields(cls)  # type: ignore[arg-type] # every part and algorithm is one
        if field.init and field.name not in settings and field_default(field) is MISSING
    ]
    if missing:
        raise ConfigError(f"{missing[0]}: missing; it has no default")
    return cls(**values)


def build_part(kind: type[Any], chosen: Named, section: str) -> Any:
    """Builds the part that a section of a config names, with the section's settings.

    Errors: ConfigError that names the dotted key and the remedy.
    """
    try:
        return build_dataclass(part_class(kind, chosen.name), chosen.settings)
    except ConfigError as error:
        raise ConfigError(f"{section}.{error}") from None


def part_class(kind: type, name: str) -> type[Any]:
    """The class of the part `name` of a kind (`Credit`, `Rollout`, ...).

    Errors: ConfigError for an unknown name (the error gives the nearest name), or for a
    class that is not a dataclass.
    """
    cls: type[Any] = load(KINDS[kind], name, "name")
    if not is_dataclass(cls):
        raise ConfigError(
            f"name: '{name}' is not a dataclass; decorate it with @dataclass(frozen=True, "
            "kw_only=True)"
        )
    return cls


def part_name(part: object) -> str | None:
    """The name by which a config selects this part; None if the object is not a part."""
    kind = next((kind for base, kind in KINDS.items() if isinstance(part, base)), None)
    return None if kind is None else name_of(kind, type(part))


def _values(cls: type[Any], settings: Mapping[str, Any], current: Any) -> dict[str, Any]:
    """Returns values for the fields of `cls` that `settings` names. `current` is the instance whose
    fields these values replace, or None."""
    known = {field.name: field for field in fields(cls) if field.init}
    hints = _type_hints(cls)
    values = {}
    for key, value in settings.items():
        if key not in known:
            raise ConfigError(f"{key}: unknown setting; {_remedy(cls, key, known)}")
        default = field_default(known[key]) if current is None else getattr(current, key)
        try:
            values[key] = _value(hints[key], value, default)
        except NumberError as error:
            raise ConfigError(f"{key}: {error}") from None
        except ConfigError as error:
            raise ConfigError(f"{key}.{error}") from None
        except ValidationError as error:
            raise ConfigError(one_line(error, value, key)) from None
    return values


def _remedy(cls: type[Any], key: str, known: Iterable[str]) -> str:
    """Returns the remedy for the unknown setting `key`: the setting with the nearest name. If no
    name is near, the remedy lists the name and the settings of this part, and the other parts that
    have a setting `key`."""
    hint = remedy(key, known)
    kind = next((kind for base, kind in KINDS.items() if issubclass(cls, base)), None)
    name = None if kind is None else name_of(kind, cls)
    if kind is None or name is None or not hint.startswith("known: "):
        return hint
    others = [
        candidate
        for candidate in names(kind)
        if is_dataclass(part := load(kind, candidate, "name"))
        and any(field.name == key and field.init for field in fields(part))
    ]
    has = hint.removeprefix("known: ")
    reason = f"'{name}' has " + ("no settings" if has == "none" else f"only {has}")
    return (
        f"{reason}; {', '.join(others)} {'has' if len(others) == 1 else 'have'} it"
        if others
        else reason
    )


def _value(hint: Any, value: Any, default: Any) -> Any:
    kind = _kind(hint)
    if kind is None and not is_dataclass(hint):
        if (problem := number_problem(hint, value)) is not None:
            raise NumberError(problem)
        return TypeAdapter(hint, config=_FINITE).validate_python(value)
    if value is None and type(None) in get_args(hint):
        return None
    if kind is not None and isinstance(value, str):
        value = {"name": value}
    if not isinstance(value, Mapping):
        raise ConfigError(f"name: got {value!r}; give a section such as {{name: ...}}")
    settings = {key: setting for key, setting in value.items() if key != "name"}
    if kind is not None and "name" in value:
        chosen = part_class(kind, str(value["name"]))
        if type(default) is not chosen:
            return build_dataclass(chosen, settings)
    if default is MISSING or default is None:
        raise ConfigError("name: missing; say which part it is")
    return replace(default, **_values(type(default), settings, default))


def field_default(field: Field[Any]) -> Any:
    """The default of a dataclass's field; MISSING if it has none."""
    return field.default if field.default_factory is MISSING else field.default_factory()


def _type_hints(cls: type[Any]) -> Mapping[str, Any]:
    """Returns the types of a dataclass's fields. They are evaluated once for each class, because a
    comparison asks for those of all its algorithms and their parts for each of its rows."""
    if cls not in _HINTS:
        _HINTS[cls] = get_type_hints(cls)
    return _HINTS[cls]


_HINTS: dict[type[Any], Mapping[str, Any]] = {}


def known_settings(cls: type[Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Returns the names of a dataclass's settings as a nested mapping. A setting with a plain value
    is mapped to None. A setting that is a section is mapped to a mapping that contains `name` and
    the settings of the section's part. `names` gives the part of each section whose part is not the
    default.

    Errors: ConfigError for an unknown part.
    """
    hints = _type_hints(cls)
    known: dict[str, Any] = {}
    for field in fields(cls):
        if not field.init:
            continue
        kind, default = _kind(hints[field.name]), field_default(field)
        known[field.name] = None
        if kind is not None:
            part = type(default)
            if field.name in names:
                try:
                    part = part_class(kind, names[field.name])
                except ConfigError as error:
                    raise ConfigError(f"{field.name}.{error}") from None
            known[field.name] = {"name": None}
            if is_dataclass(part):  # None if the field has no default part
                known[field.name] |= known_settings(part, {})
        elif is_dataclass(hints[field.name]):
            known[field.name] = known_settings(hints[field.name], {})
    return known


def _kind(hint: Any) -> type | None:
    return next((candidate for candidate in (hint, *get_args(hint)) if candidate in KINDS), None)
