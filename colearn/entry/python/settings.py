"""Converts a program's objects to a config, by the same rules as for YAML."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel

from colearn import registry
from colearn.config.elsewhere import OF_ALGORITHMS, remedy
from colearn.contract import DecPOMDP
from colearn.errors import ConfigError

from .kinds import Arguments, DataGiven, RewardGiven, Sections, TaskGiven
from .models import model_section, models_section
from .named import Names

_OF_TRAIN = ("task", "algorithm", "out", "seed", "resume")


def settings_from(
    task: TaskGiven | None, names: Names, arguments: Arguments, seed: int | None = None
) -> dict[str, Any]:
    """Returns a config in the form of YAML data, without the algorithm; adds the objects to which
    the config refers to `names`.

    Errors: ConfigError, one line that names the argument and the remedy.
    """
    known = Arguments.__annotations__
    for key in arguments:
        if key not in known:
            hint = remedy(key, [*known, *_OF_TRAIN])
            if key in OF_ALGORITHMS:
                hint = f"did you mean 'algorithm.{key}'?"
            raise ConfigError(f"{key}: no such argument; {hint}")
    settings: dict[str, Any] = {
        "task": _task(task, arguments.get("reward"), arguments.get("data"), names),
        "models": models_section(arguments.get("models")),
    }
    if (critic := arguments.get("critic")) is not None:
        settings["critic"] = model_section(critic, "critic")
    for key, value in arguments.items():
        if key in Sections.__annotations__:
            settings[key] = _plain(value)
    if callbacks := arguments.get("callbacks"):
        run = _run_section(settings)
        if not isinstance(callbacks, Iterable):
            raise ConfigError(f"callbacks: {type(callbacks).__name__} is no list; write [...]")
        named = [*run.get("callbacks", ()), *map(names.callback, callbacks)]
        settings["run"] = {**run, "callbacks": named}
    if seed is not None:
        run = _run_section(settings)
        if run.get("seed", seed) != seed:
            raise ConfigError("seed: run.seed is given, too; leave one out")
        settings["run"] = {**run, "seed": seed}
    return settings


def _run_section(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the section `run`. Errors: ConfigError if it is no section, or if its callbacks are
    no list."""
    run = settings.get("run", {})
    if not isinstance(run, Mapping):
        raise ConfigError(f"run: must be a section with keys of its own, got {run!r:.60}")
    if not isinstance(run.get("callbacks", ()), list | tuple):
        raise ConfigError(f"run.callbacks: must be a list, got {run['callbacks']!r:.60}")
    return run


def _task(
    task: TaskGiven | None, reward: RewardGiven | None, data: DataGiven | None, names: Names
) -> Any:
    if task is None:
        if data is None:
            raise ConfigError("task: missing; give a task, or data and reward for one of rows")
        task = "dataset"
    section = names.task(task)
    data_settings: dict[str, Any] = {}
    if reward is not None:
        data_settings["reward"] = names.reward(reward)
    if data is not None:
        splits = data if isinstance(data, Mapping) else {"train": data}
        if "train" not in splits or set(splits) - {"train", "test"}:
            raise ConfigError(
                "data: give rows, or a mapping with train and test; this mapping has "
                f"{', '.join(map(str, splits)) or 'nothing'}"
            )
        data_settings["path"] = names.rows(splits["train"])
        if "test" in splits:
            data_settings["test_path"] = names.rows(splits["test"], "data.test")
    if not data_settings:
        return section
    section = {"name": section} if isinstance(section, str) else section
    _check_takes(section["name"], data_settings)
    for key in data_settings.keys() & section.keys():
        raise ConfigError(f"task.{key}: given twice; leave one out")
    return {**section, **data_settings}


def _check_takes(name: str, settings: Mapping[str, Any]) -> None:
    """Errors: ConfigError if the task does not take `reward` or `data`."""
    built = registry.instance(name, "task", DecPOMDP) is not None
    known = {} if built else inspect.signature(registry.task_class(name, "task")).parameters
    for key in settings:
        if key not in known:
            argument = "reward" if key == "reward" else "data"
            raise ConfigError(
                f"{argument}: task {name} has its own; leave it out, or leave task out to train "
                "on data and reward"
            )


def _plain(value: Any) -> Any:
    """Returns settings as written in YAML."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_unset=True)
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    return value
