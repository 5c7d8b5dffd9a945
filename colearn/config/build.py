"""From a `Config` to the task, the algorithm and the map from agents to models."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from math import isnan
from typing import TYPE_CHECKING, Any, get_type_hints

from pydantic import PydanticSchemaGenerationError, TypeAdapter, ValidationError

from colearn.errors import ConfigError, nearest

from .load import one_line
from .parts import build_dataclass
from .settings import EACH, AgentSettings, Config, ModelSettings, Named

if TYPE_CHECKING:
    from colearn.contract import Acts, Algorithm, DecPOMDP, Parts


def build_task(config: Config) -> DecPOMDP[Any, Any]:
    """The task of a config, wrapped if it asks for it.

    Errors: ConfigError for an unknown task or setting (with the nearest name) or a bad value.
    """
    from colearn.registry import task_class

    cls = task_class(config.task.name)
    _check_complete(cls, f"task.name: {config.task.name}")
    settings = config.task.settings
    known = inspect.signature(cls).parameters
    for key in settings:
        if key not in known:
            raise ConfigError(f"task.{key}: unknown setting; {nearest(key, known)}")
    for key, parameter in known.items():
        named = parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if named and parameter.default is parameter.empty and key not in settings:
            raise ConfigError(f"task.{key}: missing; {config.task.name} has no default for it")
    task = cls(**_typed(cls, settings))
    if config.wrapper is not None:
        from colearn.wrappers import WRAPPERS

        task = WRAPPERS[config.wrapper](task)
    return task


def _check_complete(cls: type[Any], where: str) -> None:
    """Errors: ConfigError for a class that leaves a method of its contract out."""
    if inspect.isabstract(cls):
        lacks = ", ".join(sorted(cls.__abstractmethods__))
        raise ConfigError(f"{where} has no {lacks}; write what is missing in its class")


def _typed(cls: type[Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as the types that the constructor's annotations say; others as they are.

    Errors: ConfigError that names the setting.
    """
    # a dataclass's fields are spelt in the modules of the classes that have them
    hints = get_type_hints(cls if is_dataclass(cls) else cls.__init__)
    found = dict(settings)
    for key, value in settings.items():
        if _has_nan(value):
            raise ConfigError(f"task.{key}: must hold numbers, got nan")
        try:
            check = TypeAdapter(hints[key]) if key in hints else None
        except PydanticSchemaGenerationError:
            check = None  # an annotation of the task's own, for the task to check
        if check is None:
            continue
        try:
            found[key] = check.validate_python(value)
        except ValidationError as error:
            raise ConfigError(one_line(error).replace("config", f"task.{key}", 1)) from None
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
    from colearn.registry import algorithm_class

    cls = algorithm_class(config.algorithm.name)
    _check_complete(cls, f"algorithm.name: {config.algorithm.name}")
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
    from colearn.registry import load

    cls = load("programs", chosen.name)
    if not (isinstance(cls, type) and is_dataclass(cls) and hasattr(cls, "act")):
        raise ConfigError(f"{where}: '{chosen.name}' is no dataclass with a method act(view)")
    try:
        program: Acts = build_dataclass(cls, chosen.settings)  # type: ignore[assignment]  # type: ignore[assignment]
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
