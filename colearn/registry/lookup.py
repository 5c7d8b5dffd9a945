"""Registry: resolves a name in a config to a part, task, algorithm or program.

A config can name a part of any kind in three ways: by a shipped name (in the `NAMES` table of the
kind's package), by an entry point of an installed package (in the group `colearn.KIND`, such as
`colearn.advantages`), or as `module:Class` for user code. `object:NAME` is an object that the
program passed (`colearn.registry.given`).
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Literal

from colearn.errors import ConfigError, nearest

from .given import given, is_given
from .own_code import is_target, own_code_runs, own_object

if TYPE_CHECKING:
    from colearn.contract import Algorithm, DecPOMDP

Kind = Literal[
    "advantages",
    "algorithms",
    "callbacks",
    "casts",
    "credits",
    "critics",
    "generators",
    "hosts",
    "learners",
    "losses",
    "programs",
    "rewards",
    "rollouts",
    "tasks",
    "trackers",
    "wrappers",
]


@dataclass(frozen=True, slots=True)
class KindOfPart:
    """A kind of part that a config can name."""

    one: str
    """Name of the kind in the singular, for error messages."""
    package: str
    """The kind's package. The package's `NAMES` maps shipped names to `module:Class`; the module is
    relative to the package unless it is absolute."""
    base: str
    """The base class of the kind, as `module:Class`."""


KINDS: Mapping[Kind, KindOfPart] = {
    "advantages": KindOfPart(
        "advantage", "colearn.methods.advantage", "colearn.contract:Advantage"
    ),
    "algorithms": KindOfPart("algorithm", "colearn.algorithms", "colearn.contract:Algorithm"),
    "callbacks": KindOfPart("callback", "colearn.training.callbacks", "colearn.contract:Callback"),
    "casts": KindOfPart("cast", "colearn.rollout.agents.cast", "colearn.contract:Cast"),
    "credits": KindOfPart("credit", "colearn.methods.credit", "colearn.contract:Credit"),
    "critics": KindOfPart("critic", "colearn.methods.critic", "colearn.contract:Critic"),
    "generators": KindOfPart("generator", "colearn.engines", "colearn.contract:GeneratorKind"),
    "hosts": KindOfPart("host", "colearn.training.hosts", "colearn.contract:HostKind"),
    "learners": KindOfPart("learner", "colearn.training.learners", "colearn.contract:LearnerKind"),
    "losses": KindOfPart("loss", "colearn.methods.loss", "colearn.contract:PolicyLoss"),
    "programs": KindOfPart("program", "colearn.rollout.agents.programs", "colearn.contract:Acts"),
    "rewards": KindOfPart("reward", "colearn.tasks.rewards", "colearn.contract:RewardFunction"),
    "rollouts": KindOfPart("rollout", "colearn.rollout", "colearn.contract:Rollout"),
    "tasks": KindOfPart("task", "colearn.tasks", "colearn.contract:DecPOMDP"),
    "trackers": KindOfPart("tracker", "colearn.training.trackers", "colearn.contract:Tracker"),
    "wrappers": KindOfPart("wrapper", "colearn.tasks.wrappers", "colearn.tasks.wrappers:Wraps"),
}


def names(kind: Kind) -> dict[str, str]:
    """Maps every known name of the kind to its target `module:Class`."""
    package = KINDS[kind].package
    shipped: Mapping[str, str] = importlib.import_module(package).NAMES
    targets = {name: _absolute(package, target) for name, target in shipped.items()}
    return dict(sorted({**installed(kind), **targets}.items()))


def _absolute(package: str, target: str) -> str:
    if target.startswith("colearn."):
        return target
    return f"{package}{target}" if target.startswith(":") else f"{package}.{target}"


def installed(kind: Kind) -> Mapping[str, str]:
    """Names from other packages' entry points. The names are cached per `sys.path`, since the
    lookup reads a file of every installed distribution."""
    return _entry_points(f"colearn.{kind}", tuple(sys.path))


@lru_cache
def _entry_points(group: str, _path: tuple[str, ...]) -> Mapping[str, str]:
    first: dict[str, str] = {}
    for point in entry_points(group=group):
        first.setdefault(point.name, point.value)
    return first


def check_name(kind: Kind, name: str, field: str | None = None) -> None:
    """Check that a name is known or has the form `module:Class`, without importing the class.

    Errors: ConfigError naming `field` (the kind, if not given) and the nearest name.
    """
    noun = KINDS[kind].one
    field = field or noun
    if _own(name):
        if not is_target(name):
            raise ConfigError(f"{field}: '{name}' is no module:Class; give both as names")
        if not own_code_runs():
            raise ConfigError(f"{field}: '{name}' is code of its own, which reading does not run")
    elif name not in (known := names(kind)):
        raise ConfigError(f"{field}: unknown {noun} '{name}'; {nearest(name, known)}")


def _own(name: str) -> bool:
    """Whether a name has the form `module:Class`; False if a list or a section was given in place
    of a name."""
    return ":" in name and not name.startswith(("{", "["))


def load(kind: Kind, name: str, field: str | None = None) -> Any:
    """Returns the class that a name or `module:Class` refers to.

    The module is imported, which runs its code. The class is only instantiated after its kind has
    been checked.

    Errors: ConfigError naming `field` (the kind, if not given) and the nearest name, the missing
    module or class, the wrong base class, or the missing methods.
    """
    field = field or KINDS[kind].one
    check_name(kind, name, field)
    target = name if _own(name) else names(kind)[name]
    module, _, attribute = target.partition(":")
    if _own(name):
        cls = own_object(module, attribute, name, field)
    else:
        cls = getattr(importlib.import_module(module), attribute)
    home, _, base_name = KINDS[kind].base.partition(":")
    base = getattr(importlib.import_module(home), base_name)
    if not (isinstance(cls, type) and issubclass(cls, base)):
        raise ConfigError(
            f"{field}: '{name}' is no class of {home}.{base_name}; name one that derives from it"
        )
    if inspect.isabstract(cls):
        lacks = ", ".join(sorted(getattr(cls, "__abstractmethods__", ())))
        raise ConfigError(f"{field}: {name} has no {lacks}; write what is missing in its class")
    return cls


def instance(name: str, field: str, base: type) -> Any:
    """Returns the object of `object:NAME` if this object is an instance of `base`; None for any
    other name.

    Errors: ConfigError naming `field` if the object was not passed in this process.
    """
    if not is_given(name):
        return None
    value = given(name, field)
    return value if isinstance(value, base) else None


def name_of(kind: Kind, cls: type) -> str:
    """The name by which a config selects a class, or `module:Class` if it has none."""
    for name, target in names(kind).items():
        module, _, attribute = target.partition(":")
        if getattr(sys.modules.get(module), attribute, None) is cls:
            return name
    return f"{cls.__module__}:{cls.__qualname__}"


def algorithm_class(name: str, field: str | None = None) -> type[Algorithm]:
    """Returns the class of a registered algorithm. Errors: ConfigError for an unknown name."""
    cls: type[Algorithm] = load("algorithms", name, field)
    return cls


def task_class(name: str, field: str | None = None) -> type[DecPOMDP[Any, Any]]:
    """Returns the class of a registered task. Errors: ConfigError for an unknown name."""
    cls: type[DecPOMDP[Any, Any]] = load("tasks", name, field)
    return cls
