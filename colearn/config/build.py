"""Builds the task, algorithm, programs and trackers that a `Config` names."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import is_dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, get_type_hints

from pydantic import PydanticSchemaGenerationError, TypeAdapter, ValidationError

from colearn import registry
from colearn.contract import Algorithm, Callback, DecPOMDP
from colearn.contract.checked_task import asking
from colearn.contract.global_switches import checked
from colearn.errors import ConfigError

from .elsewhere import remedy
from .parts import build_dataclass, build_part
from .settings import Config
from .strict_section import Named, number_problem
from .validation_messages import one_line

if TYPE_CHECKING:
    from colearn.contract import Acts, Tracker


LONGEST = 100_000
"""Maximum number of turns of an episode."""


def build_task(config: Config) -> DecPOMDP[Any, Any]:
    """Builds the task of a config. If the config names a wrapper, the returned task is wrapped.

    Errors: ConfigError for an unknown task or setting (with the nearest name) or a bad value;
    TaskError for any other exception from the task's constructor.
    """
    task = registry.instance(config.task.name, "task.name", DecPOMDP)
    if task is None:
        cls = registry.task_class(config.task.name, "task.name")
        settings = _arguments(cls, config.task, "task", positional=0)
        with checked("task.__init__", importing=True), asking(cls, "__init__"):
            task = cls(**settings)
    elif config.task.settings:
        _refuse_settings("task", config.task)
    for name in ("agents", "horizon"):
        with asking(task, name):
            getattr(task, name)
    if config.wrapper is not None:
        wrapper: Any = registry.load("wrappers", config.wrapper.name, "wrapper")
        task = wrapper.wrap(task, **_arguments(wrapper, config.wrapper, "wrapper", positional=1))
    return task


def build_tracker(chosen: Named, folder: Path, config: Mapping[str, Any]) -> Tracker:
    """Builds the tracker that an entry of `run.trackers` names, and opens it for a run's folder and
    config.

    Errors: ConfigError for an unknown name or setting; MissingExtra naming the pip command.
    """
    cls: Any = registry.load("trackers", chosen.name, "run.trackers")
    tracker: Tracker = cls(folder, config, **_arguments(cls, chosen, "run.trackers", positional=2))
    return tracker


def build_callbacks(config: Config) -> tuple[Callback, ...]:
    """Returns the callbacks of `run.callbacks`, which are built from their settings or were passed
    as objects in Python.

    Errors: ConfigError for an unknown name or setting.
    """
    built: list[Callback] = []
    for number, chosen in enumerate(config.run.callbacks):
        section = f"run.callbacks.{number}"
        callback = registry.instance(chosen.name, f"{section}.name", Callback)
        if callback is None:
            callback = build_part(Callback, chosen, section)
        elif chosen.settings:
            _refuse_settings(section, chosen)
        built.append(callback)
    return tuple(built)


def _arguments(cls: type[Any], chosen: Named, section: str, *, positional: int) -> dict[str, Any]:
    """Returns a section's settings as constructor arguments; the constructor's first `positional`
    parameters are not settings.

    Errors: ConfigError for an unknown, missing or wrong setting.
    """
    known = dict(list(inspect.signature(cls).parameters.items())[positional:])
    for key in chosen.settings:
        if key not in known:
            raise ConfigError(f"{section}.{key}: unknown setting; {remedy(key, known)}")
    for key, parameter in known.items():
        named = parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if named and parameter.default is parameter.empty and key not in chosen.settings:
            raise ConfigError(f"{section}.{key}: missing; {chosen.name} has no default for it")
    return _typed(cls, chosen.settings, section)


def _typed(cls: type[Any], settings: Mapping[str, Any], section: str) -> dict[str, Any]:
    """Converts settings to the types in the constructor's annotations; settings without annotation
    are unchanged.

    Errors: ConfigError that names the setting.
    """
    # a dataclass's annotations are resolved in the modules of its base classes
    hints = get_type_hints(cls if is_dataclass(cls) else cls.__init__)
    typed = dict(settings)
    for key, value in settings.items():
        _check_finite(value, f"{section}.{key}")
        if key == "horizon" and type(value) is int and not 1 <= value <= LONGEST:
            raise ConfigError(f"{section}.horizon: must lie in 1 to {LONGEST:,}, got {value}")
        problem = number_problem(hints.get(key), value)
        if problem is not None:
            raise ConfigError(f"{section}.{key}: {problem}")
        try:
            check = TypeAdapter(hints[key]) if key in hints else None
        except PydanticSchemaGenerationError:
            check = None  # an annotation that pydantic cannot check is left to the task
        if check is None:
            continue
        try:
            typed[key] = check.validate_python(value)
        except ValidationError as error:
            line = one_line(error, value, f"{section}.{key}")
            raise ConfigError(line) from None
        _check_finite(typed[key], f"{section}.{key}")  # YAML 1.1 reads 1e400 as text
    return typed


def _check_finite(value: Any, section: str) -> None:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for element in value:
            _check_finite(element, section)
    elif isinstance(value, float) and not isfinite(value):
        raise ConfigError(f"{section}: must hold finite numbers, got {value}")


def build_algorithm(config: Config) -> Algorithm:
    """Builds the algorithm of a config, with type-checked hyper-parameters.

    Errors: ConfigError for an unknown name or setting (with the nearest name) or a wrong type.
    """
    algorithm = registry.instance(config.algorithm.name, "algorithm.name", Algorithm)
    if algorithm is None:
        cls = registry.algorithm_class(config.algorithm.name, "algorithm.name")
    elif config.algorithm.settings:
        _refuse_settings("algorithm", config.algorithm)
    try:
        if algorithm is None:
            algorithm = build_dataclass(cls, config.algorithm.settings)
        algorithm.checked_parts()
    except ConfigError as error:
        raise ConfigError(f"algorithm.{error}") from None
    return algorithm


def _refuse_settings(section: str, chosen: Named) -> NoReturn:
    """Reject settings of an object that is already built. Errors: ConfigError, always."""
    key = next(iter(chosen.settings))
    raise ConfigError(
        f"{section}.{key}: {chosen.name} is built already; set it where the object is made"
    )


def build_program(chosen: Named, section: str) -> Acts:
    """Builds the program that an agent's settings name.

    Errors: ConfigError for an unknown name or setting, or a class that cannot act.
    """
    cls: type[Any] = registry.load("programs", chosen.name, f"{section}.name")
    if not is_dataclass(cls):
        raise ConfigError(f"{section}.name: '{chosen.name}' is not a dataclass; make it one")
    try:
        program: Acts = build_dataclass(cls, chosen.settings)  # type: ignore[assignment]
    except ConfigError as error:
        raise ConfigError(f"{section}.{error}") from None
    return program
