"""Table of objects that a program gave to its runs; a config names each as `object:NAME`."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from colearn.errors import ConfigError

PREFIX = "object:"
"""Start of every name in the table."""

_given: dict[str, Any] = {}
"""The objects of this process, by name; a later one replaces an earlier one of the same name."""


def give(value: object, name: str) -> str:
    """Add an object to the table; returns how a config names it."""
    _given[f"{PREFIX}{name}"] = value
    return f"{PREFIX}{name}"


def is_given(name: str) -> bool:
    """Whether a name of a config is that of an object."""
    return name.startswith(PREFIX)


def given(name: str, where: str) -> Any:
    """The object of a name.

    Errors: ConfigError naming `where`, where this process was not given the object.
    """
    if name not in _given:
        raise ConfigError(
            f"{where}: '{name}' is an object that the run's program gave; resume from that program "
            "with colearn.train(..., out=FOLDER, resume=True)"
        )
    return _given[name]


def import_name(value: Any) -> str | None:
    """The `module:name` under which another process can import a class or a function; None for
    one of `__main__`, a notebook, or the inside of a function."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    if module in (None, "__main__") or not str(name).isidentifier():
        return None
    imported = sys.modules.get(module) or importlib.import_module(module)
    return f"{module}:{name}" if getattr(imported, name, None) is value else None
