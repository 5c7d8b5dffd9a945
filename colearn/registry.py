"""Names to classes: the only way the core reaches a part, a task, an algorithm or a program.

Every kind of part is named alike: by the name of a shipped one (the `NAMES` table of its package),
by an entry point of an installed package (the group `colearn.KIND`, such as `colearn.advantages`),
or by `module:Class`, which is code of the config's own.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Literal

from .errors import ConfigError, nearest

if TYPE_CHECKING:
    from .contract import Algorithm, DecPOMDP

Kind = Literal[
    "advantages",
    "algorithms",
    "casts",
    "credits",
    "critics",
    "generators",
    "hosts",
    "learners",
    "losses",
    "programs",
    "rollouts",
    "tasks",
    "trackers",
    "wrappers",
]


@dataclass(frozen=True, slots=True)
class KindOfPart:
    """One kind of what a config names."""

    one: str
    """The word for a single one, in errors."""
    package: str
    """Its `NAMES` lists the shipped ones as `module:Class`, below it unless they say `colearn`."""
    base: str
    """The class, as `module:Class`, that every one of the kind derives from."""


KINDS: Mapping[Kind, KindOfPart] = {
    "advantages": KindOfPart("advantage", "colearn.advantage", "colearn.contract:Advantage"),
    "algorithms": KindOfPart("algorithm", "colearn.algorithms", "colearn.contract:Algorithm"),
    "casts": KindOfPart("cast", "colearn.cast", "colearn.contract:Cast"),
    "credits": KindOfPart("credit", "colearn.credit", "colearn.contract:Credit"),
    "critics": KindOfPart("critic", "colearn.critic", "colearn.contract:Critic"),
    "generators": KindOfPart("generator", "colearn.generate", "colearn.contract:GeneratorKind"),
    "hosts": KindOfPart("host", "colearn.hosts", "colearn.contract:HostKind"),
    "learners": KindOfPart("learner", "colearn.learn", "colearn.contract:LearnerKind"),
    "losses": KindOfPart("loss", "colearn.loss", "colearn.contract:PolicyLoss"),
    "programs": KindOfPart("program", "colearn.agents.programs", "colearn.contract:Acts"),
    "rollouts": KindOfPart("rollout", "colearn.rollout", "colearn.contract:Rollout"),
    "tasks": KindOfPart("task", "colearn.tasks", "colearn.contract:DecPOMDP"),
    "trackers": KindOfPart("tracker", "colearn.experiment.trackers", "colearn.contract:Tracker"),
    "wrappers": KindOfPart("wrapper", "colearn.wrappers", "colearn.wrappers:Wraps"),
}

_own_code: ContextVar[bool] = ContextVar("own_code", default=True)


@contextmanager
def without_own_code() -> Iterator[None]:
    """While a config is only read (a report, a comparison's record), `module:Class` is an error:
    nothing but installed names is imported."""
    before = _own_code.set(False)
    try:
        yield
    finally:
        _own_code.reset(before)


def names(kind: Kind) -> dict[str, str]:
    """Every known name of the kind, with where it lives ('module:Class')."""
    package = KINDS[kind].package
    shipped: Mapping[str, str] = importlib.import_module(package).NAMES
    ours = {name: _absolute(package, target) for name, target in shipped.items()}
    return dict(sorted({**installed(kind), **ours}.items()))


def _absolute(package: str, target: str) -> str:
    if target.startswith("colearn."):
        return target
    return f"{package}{target}" if target.startswith(":") else f"{package}.{target}"


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


def check_name(kind: Kind, name: str, where: str | None = None) -> None:
    """See that a name is known, or has the form of `module:Class`, without importing what it names.

    Errors: ConfigError naming `where` it stands (the kind, if not given) and the nearest name.
    """
    one = KINDS[kind].one
    where = where or one
    if _own(name):
        if not is_target(name):
            raise ConfigError(f"{where}: '{name}' is no module:Class; give both as names")
        if not _own_code.get():
            raise ConfigError(f"{where}: '{name}' is code of its own, which reading does not run")
    elif name not in (known := names(kind)):
        raise ConfigError(f"{where}: unknown {one} '{name}'; {nearest(name, known)}")


def _own(name: str) -> bool:
    """It means a module and a class: no list or section written where a name belongs."""
    return ":" in name and not name.startswith(("{", "["))


def is_target(text: str) -> bool:
    """It has the form of `module:Class`."""
    module, _, attribute = text.partition(":")
    return all(part.isidentifier() for part in (*module.split("."), attribute))


def load(kind: Kind, name: str, where: str | None = None) -> Any:
    """The class behind a name, or behind `module:Class` for one that has no name.

    To find out, the module is imported, which runs its code; the class itself is called by nobody
    before it is known to be of the kind.

    Errors: ConfigError naming `where` it stands (the kind, if not given) and the nearest known
    name, what of module:Class is not there, what the class is not, or which methods it leaves out.
    """
    where = where or KINDS[kind].one
    check_name(kind, name, where)
    target = name if _own(name) else names(kind)[name]
    module, _, attribute = target.partition(":")
    if _own(name):
        found = _import(module, attribute, name, where)
    else:
        found = getattr(importlib.import_module(module), attribute)
    home, _, base_name = KINDS[kind].base.partition(":")
    base = getattr(importlib.import_module(home), base_name)
    if not (isinstance(found, type) and issubclass(found, base)):
        raise ConfigError(
            f"{where}: '{name}' is no class of {home}.{base_name}; name one that derives from it"
        )
    if inspect.isabstract(found):
        lacks = ", ".join(sorted(getattr(found, "__abstractmethods__", ())))
        raise ConfigError(f"{where}: {name} has no {lacks}; write what is missing in its class")
    return found


def _import(module: str, attribute: str, name: str, where: str) -> Any:
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if not f"{module}.".startswith(f"{error.name}."):  # one that it imports itself
            raise
        raise ConfigError(
            f"{where}: no module '{error.name}' for '{name}'; run from its folder or install it"
        ) from None
    if not hasattr(found, attribute):
        raise ConfigError(f"{where}: module '{module}' has no '{attribute}'")
    return getattr(found, attribute)


def check_function(target: str, where: str) -> None:
    """See that a `module:function` may be used, without importing it.

    Errors: ConfigError naming `where` it stands.
    """
    if not is_target(target):
        raise ConfigError(f"{where}: '{target}' is no module:function; give both as names")
    if not _own_code.get():
        raise ConfigError(f"{where}: '{target}' is code of its own, which reading does not run")


def own_function(target: str, where: str) -> Any:
    """The function behind `module:function`; the module is imported.

    Errors: ConfigError naming `where` it stands, and what is not there.
    """
    check_function(target, where)
    module, _, attribute = target.partition(":")
    found = _import(module, attribute, target, where)
    if not callable(found):
        raise ConfigError(f"{where}: '{target}' is a {type(found).__name__}; name a function")
    return found


def name_of(kind: Kind, cls: type) -> str:
    """The name by which a config chooses a class; `module:Class` where it has none."""
    for name, target in names(kind).items():
        module, _, attribute = target.partition(":")
        if getattr(sys.modules.get(module), attribute, None) is cls:
            return name
    return f"{cls.__module__}:{cls.__qualname__}"


def algorithm_class(name: str, where: str | None = None) -> type[Algorithm]:
    cls: type[Algorithm] = load("algorithms", name, where)
    return cls


def task_class(name: str, where: str | None = None) -> type[DecPOMDP[Any, Any]]:
    cls: type[DecPOMDP[Any, Any]] = load("tasks", name, where)
    return cls
