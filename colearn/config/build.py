"""From a `Config` to the task, the algorithm and the map from agents to models."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from colearn.errors import ConfigError, nearest

from .load import one_line
from .settings import EACH, AgentSettings, Config, ModelSettings

if TYPE_CHECKING:
    from colearn.contract import Algorithm, DecPOMDP


def build_task(config: Config) -> DecPOMDP[Any, Any]:
    """The task of a config, wrapped if it asks for it.

    Errors: ConfigError for an unknown task or setting (with the nearest name) or a bad value.
    """
    from colearn.registry import task_class

    cls = task_class(config.task.name)
    settings = config.task.settings
    known = inspect.signature(cls).parameters
    for key in settings:
        if key not in known:
            raise ConfigError(f"task.{key}: unknown setting; {nearest(key, known)}")
    for key, parameter in known.items():
        named = parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if named and parameter.default is parameter.empty and key not in settings:
            raise ConfigError(f"task.{key}: missing; {config.task.name} has no default for it")
    task = cls(**settings)
    if config.wrapper is not None:
        from colearn.wrappers import WRAPPERS

        task = WRAPPERS[config.wrapper](task)
    return task


def build_algorithm(config: Config) -> Algorithm:
    """The algorithm of a config, its hyper-parameters checked by type.

    Errors: ConfigError for an unknown name or setting (with the nearest name) or a wrong type.
    """
    from colearn.registry import algorithm_class

    cls = algorithm_class(config.algorithm.name)
    settings = config.algorithm.settings
    known = list(inspect.signature(cls).parameters)
    for key in settings:
        if key not in known:
            raise ConfigError(f"algorithm.{key}: unknown setting; {nearest(key, known)}")
    try:
        algorithm = TypeAdapter(cls).validate_python(settings)
    except ValidationError as error:
        raise ConfigError("algorithm." + one_line(error)) from None
    algorithm.checked_parts()
    return algorithm


def bind_agents(config: Config, agents: Sequence[str]) -> Config:
    """Spell out `*`: every agent of the task with its settings, every model that one plays.

    Errors: ConfigError for an agent without a model, a model without an agent, a foreign agent.
    """
    for name in config.agents:
        if name != EACH and name not in agents:
            raise ConfigError(f"agents.{name}: the task has no such agent; {nearest(name, agents)}")
    bound: dict[str, AgentSettings] = {}
    models: dict[str, ModelSettings] = {}
    for agent in agents:
        settings = config.agents.get(agent) or config.agents.get(EACH)
        if settings is None:
            raise ConfigError(
                f"agents.{agent}: this agent of the task has no entry; add it or a '*' entry"
            )
        name = agent if settings.model == EACH else settings.model
        model = config.models.get(name)
        if model is None and settings.model == EACH:
            model = config.models.get(EACH)
        if model is None:
            raise ConfigError(
                f"agents.{agent}.model: no model '{name}' in models; {nearest(name, config.models)}"
            )
        bound[agent] = settings.model_copy(update={"model": name})
        models[name] = model
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
    return config.model_copy(update={"agents": bound, "models": models})


def untrained_config(config: Config) -> Config:
    """The config with every model as it is, and no critic."""
    models = {
        name: model.model_copy(update={"trained": False, "lora": None})
        for name, model in config.models.items()
    }
    return config.model_copy(update={"models": models, "critic": None})
