"""Names to classes: the only way the core reaches an algorithm, a task or a program.

Shipped ones live in `colearn.algorithms`, `colearn.tasks` and `colearn.agents.programs`, whose
`NAMES` tables map a name to 'module:Class'; third parties add theirs through the entry-point groups
`colearn.algorithms`, `colearn.tasks` and `colearn.programs`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Literal

from .errors import ConfigError, nearest

if TYPE_CHECKING:
    from .contract import Algorithm, DecPOMDP

Kind = Literal["algorithms", "tasks", "programs"]


def names(kind: Kind) -> dict[str, str]:
    """Every known name of the kind, with where it lives ('module:Class')."""
    if kind == "programs":
        found = dict(importlib.import_module("colearn.agents.programs").NAMES)
    else:
        shipped: Mapping[str, str] = importlib.import_module(f"colearn.{kind}").NAMES
        found = {name: f"colearn.{kind}.{target}" for name, target in shipped.items()}
    return dict(sorted({**installed(kind), **found}.items()))


def installed(kind: Kind) -> Mapping[str, str]:
    """What third parties have named by entry points, looked up once for each `sys.path`: it
    reads a file of every installed distribution."""
    return _entry_points(f"colearn.{kind}", tuple(sys.path))


@lru_cache
def _entry_points(group: str, _path: tuple[str, ...]) -> Mapping[str, str]:
    first: dict[str, str] = {}
    for point in entry_points(group=group):
        first.setdefault(point.name, point.value)
    return first


def load(kind: Kind, name: str) -> Any:
    """The class behind a name, or behind 'module:Class' for one that has no name yet.

    To find out, 'module' is imported, which runs its code; the class itself is called by nobody
    before it is known to be a task's, an algorithm's or a program's.

    Errors: ConfigError naming the nearest known name, what of module:Class is not there, or what
    is no such class.
    """
    if ":" in name:
        found = _import(kind, name)
    else:
        known = names(kind)
        if name not in known:
            raise ConfigError(f"{kind[:-1]}: unknown {kind[:-1]} '{name}'; {nearest(name, known)}")
        module, _, attribute = known[name].partition(":")
        found = getattr(importlib.import_module(module), attribute)
    base = _base(kind)
    if not (isinstance(found, type) and issubclass(found, base)):
        raise ConfigError(
            f"{kind[:-1]}: '{name}' is no class of colearn.contract.{base.__name__}; "
            "name one that derives from it"
        )
    return found


def _base(kind: Kind) -> type:
    from .contract import Acts, Algorithm, DecPOMDP

    return {"tasks": DecPOMDP, "algorithms": Algorithm, "programs": Acts}[kind]


def _import(kind: Kind, target: str) -> Any:
    module, _, attribute = target.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), attribute)):
        raise ConfigError(f"{kind[:-1]}: '{target}' is no module:Class; give both as names")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if not f"{module}.".startswith(f"{error.name}."):  # one that it imports itself
            raise
        raise ConfigError(
            f"{kind[:-1]}: no module '{error.name}' for '{target}'; run from its folder or install "
            "it"
        ) from None
    if not hasattr(found, attribute):
        raise ConfigError(f"{kind[:-1]}: module '{module}' has no '{attribute}'")
    return getattr(found, attribute)


def algorithm_class(name: str) -> type[Algorithm]:
    cls: type[Algorithm] = load("algorithms", name)
    return cls


def task_class(name: str) -> type[DecPOMDP[Any, Any]]:
    cls: type[DecPOMDP[Any, Any]] = load("tasks", name)
    return cls
