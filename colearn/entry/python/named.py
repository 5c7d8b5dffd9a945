"""Gives names to a program's objects in a config: the importable name if the object has one,
otherwise `object:NAME`."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from pydantic_core import PydanticSerializationError, to_jsonable_python

from colearn.config import Named, build_part, part_name
from colearn.config.parts import KINDS, build_dataclass, field_default
from colearn.contract import Algorithm, Callback, DecPOMDP, RewardFunction
from colearn.errors import ConfigError
from colearn.registry import name_of
from colearn.registry.given import PREFIX, give, import_name
from colearn.text.notes import note

from .row_digest import rows_digest

_EVENTS = ("on_start", "on_rollout", "on_update", "on_evaluate", "on_save", "on_end")
"""Methods of a callback, which a run calls without waiting."""


class Names:
    """Names the objects of one run; two different objects never have the same name."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        """Objects that have no importable name, by their names in the config."""

    def add(self, value: object, label: str) -> str:
        """Record an object that has no importable name, and return its name."""
        label = "".join(c if c.isalnum() else "_" for c in label).strip("_") or "given"
        label = label if label.isidentifier() else f"_{label}"
        number, name = 1, f"{PREFIX}{label}"
        while self.objects.get(name, value) is not value:
            number += 1
            name = f"{PREFIX}{label}_{number}"
        self.objects[name] = value
        return give(value, name.removeprefix(PREFIX))

    def tell(self, folder: Path) -> None:
        """Print on stderr which objects are needed to resume the run in `folder`."""
        if self.objects:
            needed = ", ".join(name.removeprefix(PREFIX) for name in self.objects)
            note(f"to resume {folder}, pass the same objects again: {needed}")

    def task(self, task: Any) -> dict[str, Any] | str:
        """A config's `task` section."""
        if isinstance(task, DecPOMDP):
            return {"name": self.add(task, type(task).__name__)}
        return self._chosen(task, "tasks", DecPOMDP)

    def algorithm(self, algorithm: Any) -> dict[str, Any]:
        """A config's `algorithm` section: the settings of an algorithm object if they fully
        describe the object, otherwise the object's name."""
        if not isinstance(algorithm, Algorithm):
            chosen = self._chosen(algorithm, "algorithms", Algorithm)
            return {"name": chosen} if isinstance(chosen, str) else chosen
        cls = type(algorithm)
        try:
            section = {"name": _own_name("algorithms", cls), **_changed(algorithm, cls())}
            rebuilt = build_dataclass(cls, {k: v for k, v in section.items() if k != "name"})
        except (_Unnamed, ConfigError, TypeError):
            rebuilt = None
        if rebuilt != algorithm:
            return {"name": self.add(algorithm, cls.__name__)}
        return section

    def reward(self, reward: Any) -> Any:
        """The value of `task.reward`. Errors: ConfigError for a value that is no reward."""
        if isinstance(reward, Mapping):
            if "name" in reward:
                return dict(reward)
            return {receiver: self.reward(function) for receiver, function in reward.items()}
        if isinstance(reward, list | tuple):
            return [self.reward(function) for function in reward]
        if isinstance(reward, str):
            return reward
        if isinstance(reward, RewardFunction):
            return self._part(RewardFunction, reward, reward.label)
        if not callable(reward):
            raise ConfigError(
                f"reward: {type(reward).__name__} is no function; give one that takes prompts, "
                "completions and **kwargs"
            )
        _check_signature(reward)
        function = reward.func if isinstance(reward, partial) else reward
        label = getattr(function, "__name__", type(function).__name__)
        return import_name(reward) or self.add(reward, label)

    def callback(self, callback: Any) -> Any:
        """Returns an entry of `run.callbacks`. For a shipped callback, the entry is a section. For
        any other callback, the entry is the object's name, so that the program can read the object
        after the run. Errors: ConfigError for a value that is not a callback."""
        if not isinstance(callback, Callback):
            raise ConfigError(
                f"callbacks: {type(callback).__name__} is no Callback; derive its class from "
                "colearn.contract.Callback"
            )
        label = type(callback).__name__
        for name in _EVENTS:
            if inspect.iscoroutinefunction(getattr(callback, name)):
                raise ConfigError(
                    f"callbacks: {name} of {label} is async, and would never run; write it without"
                )
        if ":" in (part_name(callback) or ":"):
            return self.add(callback, label)
        return self._part(Callback, callback, label)

    def _part(self, kind: type, part: Any, label: str) -> Any:
        """Returns a part's section if an equal part can be built from this section; otherwise
        returns the name of the object."""
        name = part_name(part)
        if is_dataclass(part) and name is not None and not _is_local(type(part), name):
            try:
                section = {"name": name, **_changed(part, None)}
                json.dumps(section)  # a TypeError for a function
                if build_part(kind, Named(**section), "part") == part:
                    return section
            except (_Unnamed, ConfigError, TypeError):
                pass
        return self.add(part, label)

    def rows(self, rows: Any, field: str = "data") -> str:
        """Returns the value of `task.path`, which is a path, or the name of the rows, which
        contains the rows' digest.

        Errors: ConfigError for a value without rows.
        """
        if isinstance(rows, str | Path):
            return str(rows)
        if not isinstance(rows, Iterable) or not hasattr(rows, "__len__"):
            raise ConfigError(
                f"{field}: {type(rows).__name__} is no path and no list of rows; give a list of "
                "dictionaries, a datasets.Dataset or a path"
            )
        plain = [dict(row) if isinstance(row, Mapping) else row for row in rows]
        label = f"rows_{rows_digest(plain, field)[:12]}"
        if f"{PREFIX}{label}" in self.objects:  # training and held-out rows that are equal
            return f"{PREFIX}{label}"
        return self.add(plain, label)

    def _chosen(self, part: Any, kind: Any, base: type) -> dict[str, Any] | str:
        """Returns the section for an object, a class, a name or a section; a class is recorded by
        its name."""
        if isinstance(part, str):
            return part
        if isinstance(part, Mapping):
            named = {} if (name := part.get("name")) is None else {"name": name}
            if isinstance(name, type):
                named["name"] = self._class(name, kind, base)
            settings = {key: value for key, value in part.items() if key != "name"}
            return {**named, **self._settings(settings, kind[:-1])}
        return {"name": self._class(part, kind, base)}

    def _settings(self, settings: Mapping[str, Any], field: str) -> dict[str, Any]:
        return {key: self._setting(entry, f"{field}.{key}") for key, entry in settings.items()}

    def _setting(self, value: Any, field: str) -> Any:
        """Returns a section's setting as in YAML, with functions and classes replaced by their
        names. Errors: ConfigError for a value that a config cannot contain."""
        if isinstance(value, Mapping):
            return self._settings(value, field)
        if isinstance(value, list | tuple):
            return [self._setting(entry, field) for entry in value]
        if isinstance(value, RewardFunction):
            return self.reward(value)
        if callable(value):
            label = getattr(value, "__name__", type(value).__name__)
            return import_name(value) or self.add(value, label)
        if isinstance(value, Real) and not isinstance(value, bool):  # numbers of NumPy, too
            return int(value) if isinstance(value, Integral) else float(value)
        try:
            to_jsonable_python(value)
        except PydanticSerializationError:
            raise ConfigError(
                f"{field}: a config cannot contain a {type(value).__name__}; give a number, text, "
                "a list, a mapping, a function or a class"
            ) from None
        return value

    def _class(self, part: Any, kind: Any, base: type) -> str:
        if not (isinstance(part, type) and issubclass(part, base)):
            name = part.__name__ if isinstance(part, type) else type(part).__name__
            remedy = f"a name, or an object or a class of colearn.contract.{base.__name__}"
            if base is DecPOMDP and hasattr(part, "possible_agents"):
                remedy = f'{{"name": "pettingzoo", "env": {name}}}'
            raise ConfigError(f"{kind[:-1]}: {name} is no {base.__name__}; give {remedy}")
        try:
            return _own_name(kind, part)
        except _Unnamed:
            return self.add(part, part.__name__)


class _Unnamed(Exception):
    """Raised for a class that another process cannot import."""


def _is_local(cls: type, name: str) -> bool:
    """Whether another process cannot import a class by its name."""
    return ":" in name and import_name(cls) is None


def _own_name(kind: Any, cls: type) -> str:
    name = name_of(kind, cls)
    if _is_local(cls, name):
        raise _Unnamed(name)
    return name


def _changed(value: Any, default: Any) -> dict[str, Any]:
    """Returns the settings in which a dataclass differs from `default` or, if `default` is None,
    from the defaults of its fields."""
    changed = {}
    for field in fields(value):
        if not field.init:
            continue
        usual = field_default(field) if default is None else getattr(default, field.name)
        current = getattr(value, field.name)
        if type(current) is type(usual) and current == usual:
            continue
        changed[field.name] = _plain(current, usual)
    return changed


def _plain(value: Any, usual: Any) -> Any:
    """Returns a field's value as written in YAML."""
    if not is_dataclass(value) or isinstance(value, type):
        return list(value) if isinstance(value, tuple) else value
    if type(value) is type(usual):
        return _changed(value, usual)
    kind = next((kind for base, kind in KINDS.items() if isinstance(value, base)), None)
    if kind is None:
        return _changed(value, None)
    return {"name": _own_name(kind, type(value)), **_changed(value, None)}


def _check_signature(reward: Callable[..., Any]) -> None:
    """Errors: ConfigError for a function that cannot be called with TRL's arguments."""
    try:
        parameters = inspect.signature(reward).parameters
    except (TypeError, ValueError):  # a builtin without a signature
        return
    kinds = {parameter.kind for parameter in parameters.values()}
    positional = [
        name
        for name, parameter in parameters.items()
        if parameter.kind is parameter.POSITIONAL_ONLY and parameter.default is parameter.empty
    ]
    if inspect.Parameter.VAR_KEYWORD not in kinds or positional:
        name = getattr(reward, "__name__", type(reward).__name__)
        raise ConfigError(
            f"reward: '{name}' is called with prompts, completions and the data's columns by name, "
            "as in TRL; let it take them and **kwargs"
        )
