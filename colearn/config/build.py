"""From a `Config` to the task, the algorithm and the map from agents to models."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from pydantic import PydanticSchemaGenerationError, TypeAdapter, ValidationError

from colearn import registry
from colearn.errors import ConfigError, nearest

from .load import one_line
from .parts import build_dataclass
from .settings import EACH, AgentSettings, Config, ModelSettings, Named

if TYPE_CHECKING:
    from colearn.contract import Acts, Algorithm, DecPOMDP, Parts, Tracker


def build_task(config: Config) -> DecPOMDP[Any, Any]:
    """The task of a config, wrapped if it asks for it.

    Errors: ConfigError for an unknown task or setting (with the nearest name) or a bad value.
    """
    cls = registry.task_class(config.task.name, "task.name")
    task = cls(**_arguments(cls, config.task, "task", given=0))
    if config.wrapper is not None:
        wrapper: Any = registry.load("wrappers", config.wrapper.name, "wrapper")
        task = wrapper.wrap(task, **_arguments(wrapper, config.wrapper, "wrapper", given=1))
    return task


def build_tracker(chosen: Named, folder: Path, config: Mapping[str, Any]) -> Tracker:
    """The tracker that an entry of `run.trackers` names, opened for a run's folder and config.

    Errors: ConfigError for an unknown name or setting; MissingExtra naming the pip command.
    """
    cls: Any = registry.load("trackers", chosen.name, "run.trackers")
    tracker: Tracker = cls(folder, config, **_arguments(cls, chosen, "run.trackers", given=2))
    return tracker


def _arguments(cls: type[Any], chosen: Named, section: str, *, given: int) -> dict[str, Any]:
    """A section's settings as a constructor's arguments; its first `given` are not settings.

    Errors: ConfigError for an unknown, a missing or a wrong one.
    """
    known = dict(list(inspect.signature(cls).parameters.items())[given:])
    for key in chosen.settings:
        if key not in known:
            raise ConfigError(f"{section}.{key}: unknown setting; {nearest(key, known)}")
    for key, parameter in known.items():
        named = parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if named and parameter.default is parameter.empty and key not in chosen.settings:
            raise ConfigError(f"{section}.{key}: missing; {chosen.name} has no default for it")
    return _typed(cls, chosen.settings, section)


def _typed(cls: type[Any], settings: Mapping[str, Any], section: str) -> dict[str, Any]:
    """Settings as the types that the constructor's annotations say; others as they are.

    Errors: ConfigError that names the setting.
    """
    # a dataclass's fields are spelt in the modules of the classes that have them
    hints = get_type_hints(cls if is_dataclass(cls) else cls.__init__)
    found = dict(settings)
    for key, value in settings.items():
        if _has_nan(value):
            raise ConfigError(f"{section}.{key}: must hold numbers, got nan")
        try:
            check = TypeAdapter(hints[key]) if key in hints else None
        except PydanticSchemaGenerationError:
            check = None  # an annotation of the task's own, for the task to check
        if check is None:
            continue
        try:
            found[key] = check.validate_python(value)
        except ValidationError as error:
            raise ConfigError(one_line(error).replace("config", f"{section}.{key}", 1)) from None
    return found


def _has_nan(value: Any) -> bool:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return any(map(_has_nan, value))
    return isinstance(value, float) and isnan(value)


def build_algorithm(config: Config) -> Algorithm:
    """The algorithm of a config, its hyper-parameters checked by type.

    Errors: ConfigError for an unknown name or setting (with the nearest name) or a wrong type.
    """
    cls = registry.algorithm_class(config.algorithm.name, "algorithm.name")
    try:
        algorithm: Algorithm = build_dataclass(cls, config.algorithm.settings)
        algorithm.checked_parts()
    except ConfigError as error:
        raise ConfigError(f"algorithm.{error}") from None
    return algorithm


def build_program(chosen: Named, where: str) -> Acts:
    """The program that a seat's settings name.

    Errors: ConfigError for an unknown name or setting, or a class that cannot act.
    """
    cls: type[Any] = registry.load("programs", chosen.name, f"{where}.name")
    if not is_dataclass(cls):
        raise ConfigError(f"{where}.name: '{chosen.name}' is no dataclass; make it one")
    try:
        program: Acts = build_dataclass(cls, chosen.settings)  # type: ignore[assignment]
    except ConfigError as error:
        raise ConfigError(f"{where}.{error}") from None
    return program


def bind_agents(config: Config, agents: Sequence[str]) -> Config:
    """Spell out `*`: every agent of the task with its settings, every model that one plays.

    Errors: ConfigError for an agent without a model, a model without an agent, a foreign agent.
    """
    for name in config.agents:
        if name != EACH and name not in agents:
            raise ConfigError(f"agents.{name}: the task has no such agent; {nearest(name, agents)}")
    for name in config.players:
        if name in agents or name == EACH:
            raise ConfigError(f"players.{name}: is a seat of the task; give it another name")
    models: dict[str, ModelSettings] = {}
    bound = {agent: _bound(config, "agents", agent, models) for agent in agents}
    players = {name: _bound(config, "players", name, models) for name in config.players}
    for name in config.models:
        if "." in name:
            raise ConfigError(
                f"models.{name}: a dot separates keys; name it '{name.replace('.', '_')}'"
            )
        if name != EACH and name not in models:
            raise ConfigError(
                f"models.{name}: no agent plays this model; name it in agents.<agent>.model or "
                "remove it"
            )
    return config.model_copy(update={"agents": bound, "players": players, "models": models})


def _bound(
    config: Config, section: str, name: str, models: dict[str, ModelSettings]
) -> AgentSettings:
    """The settings of one seat or player with its model's name, which goes into `models`."""
    entries = config.agents if section == "agents" else config.players
    settings = entries.get(name) or entries.get(EACH)
    if settings is None:
        raise ConfigError(
            f"agents.{name}: this agent of the task has no entry; add it or a '*' entry"
        )
    if not settings.speaks:
        return settings
    chosen = name if settings.model == EACH else settings.model
    model = config.models.get(chosen)
    if model is None and settings.model == EACH:
        model = config.models.get(EACH)
    if model is None:
        raise ConfigError(
            f"{section}.{name}.model: no model '{chosen}' in models; "
            f"{nearest(chosen, config.models)}"
        )
    models[chosen] = model
    return settings.model_copy(update={"model": chosen})


def untrained_config(config: Config) -> Config:
    """The config with every model as it is, and no critic."""
    models = {
        name: model.model_copy(update={"trained": False, "lora": None})
        for name, model in config.models.items()
    }
    return config.model_copy(update={"models": models, "critic": None})


def check_paces(config: Config, parts: Parts) -> None:
    """Errors: ConfigError where a model has epochs or minibatches of its own, and the algorithm
    gives new advantages from its critic in each joint minibatch (CoLLM's Alg. 1)."""
    fixed = parts.value_loss.frozen_targets or not parts.advantage.reads
    for name in () if fixed else config.paced:
        key = "epochs" if config.models[name].epochs is not None else "minibatch"
        raise ConfigError(
            f"models.{name}.{key}: the critic gives new advantages in each joint minibatch; set "
            f"algorithm.value_loss.frozen_targets: true, or train.{key} for all"
        )
