"""Table of objects that a program passed to its runs; `object:NAME` in a config."""

from __future__ import annotations

import importlib
import sys
import threading
from typing import Any

from colearn.errors import ConfigError

PREFIX = "object:"
"""Prefix of every name in the table."""

_given: dict[str, Any] = {}
"""The objects of this process by name; a later one replaces an earlier one."""


class _Here(threading.local):
    """Holds the objects that each thread has passed, so that runs in several threads can use the
    same names."""

    def __init__(self) -> None:
        self.given: dict[str, Any] = {}


_here = _Here()


def give(value: object, name: str) -> str:
    """Add an object to the table; return its name for configs."""
    _given[f"{PREFIX}{name}"] = _here.given[f"{PREFIX}{name}"] = value
    return f"{PREFIX}{name}"


def is_given(name: str) -> bool:
    """Whether a name in a config refers to an object in the table."""
    return name.startswith(PREFIX)


def given(name: str, field: str) -> Any:
    """Returns the object that has this name; if several threads passed one, this thread's.

    Errors: ConfigError naming `field` if the object was not passed in this process.
    """
    if name not in _given:
        raise ConfigError(
            f"{field}: '{name}' is an object that the run's program gave; resume from that program "
            "with colearn.train(..., out=FOLDER, resume=True)"
        )
    return _here.given.get(name, _given[name])


def is_here(name: str) -> bool:
    """Whether an object was passed under this name in this process."""
    return name in _given


def settled(name: str) -> str:
    """Returns a permanent name for the object that is currently called `name`. A task that looks up
    an object in every episode uses the permanent name, because another run may pass another object
    under the same name. A name that belongs to no object is returned unchanged."""
    if not is_given(name) or name not in _given:
        return name
    value, number = _here.given.get(name, _given[name]), 1
    while _given.setdefault(f"{name}_given_{number}", value) is not value:
        number += 1
    return f"{name}_given_{number}"


def import_name(value: Any) -> str | None:
    """The `module:name` under which another process can import a class or a function; None if the
    class or function is defined in `__main__`, in a notebook or inside a function."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    if module in (None, "__main__") or not str(name).isidentifier():
        return None
    imported = sys.modules.get(module) or importlib.import_module(module)
    return f"{module}:{name}" if getattr(imported, name, None) is value else None
