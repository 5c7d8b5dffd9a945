"""Loads a `Config` from a name, a file or a mapping; every error is one line that names the key."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from colearn import registry
from colearn.errors import ConfigError, nearest
from colearn.registry.own_code import find_in
from colearn.text.masking import check_texts, masked_settings, with_secrets
from colearn.text.validation import first_surrogate
from colearn.text.yaml_text import parse_yaml, read_yaml_file

from .located import as_written, located
from .settings import Config
from .strict_section import EXPONENT
from .suite import SuiteSettings
from .validation_messages import dotted_key, one_line

Settings = TypeVar("Settings", bound=BaseModel)
_BASE = "base."
_DEEPEST = 100
"""Maximum number of sections in a dotted key."""
_SHOWN = 100
"""Maximum number of characters of a key or a path in an error."""


_BY_NAME = ("algorithm.", "run.generator.", "run.host.", "run.learner.", "task.", "wrapper.")
"""Sections that may be given as a plain name. A dotted key below such a section adds a setting to
the named part."""


def load_config(
    source: str | Path | Mapping[str, Any], overrides: Mapping[str, Any] | Sequence[str] = ()
) -> Config:
    """Load the config of a shipped name, a YAML path or a mapping, and apply `dotted.key=value`
    overrides.

    Errors: ConfigError, one line that names the key and the remedy.
    """
    data = dict(source) if isinstance(source, Mapping) else _read_yaml(source)
    if folders := _folders(data, source):
        find_in(*folders)
        data = located(data, folders)
        if isinstance(run := data.get("run") or {}, Mapping):
            data["run"] = {**run, "folders": folders}
        overrides = located(_as_mapping(overrides), (os.getcwd(),))
    if _holds_suite(data):
        raise ConfigError(
            f"config: {source} is a suite of comparisons; run it with colearn compare, or name one "
            "of its configs"
        )
    if "nodes" in data and "task" not in data:
        raise ConfigError(
            f"config: {source} is a workflow's graph; name it as the task of a config: "
            f"`task: {source}`"
        )
    config = _validated(Config, data, overrides)
    check_names(config)
    return config


def _folders(data: Mapping[str, Any], source: str | Path | Mapping[str, Any]) -> list[str]:
    """The folders in which a config's modules and relative paths are looked for: those that a run
    has recorded, or that of the config's file and the current one. Empty for a shipped name and for
    plain data."""
    run = data.get("run") or {}
    known = run.get("folders") if isinstance(run, Mapping) else ()
    if known and isinstance(known, list | tuple) and all(isinstance(one, str) for one in known):
        return list(known)
    if isinstance(source, Mapping) or Path(source).suffix not in (".yaml", ".yml"):
        return []
    beside = str(Path(source).absolute().parent.resolve())
    return list(dict.fromkeys((beside, os.getcwd())))


def _as_mapping(overrides: Mapping[str, Any] | Sequence[str]) -> Mapping[str, Any]:
    return overrides if isinstance(overrides, Mapping) else dict(map(_split, overrides))


def check_names(config: Config) -> None:
    """Check the names of a run's wrapper, generator, host, learner, trackers and callbacks, without
    importing.

    Errors: ConfigError that names the key and the nearest name.
    """
    if config.wrapper is not None:
        registry.check_name("wrappers", config.wrapper.name, "wrapper")
    registry.check_name("generators", config.run.generator.name, "run.generator")
    registry.check_name("hosts", config.run.host.name, "run.host")
    registry.check_name("learners", config.run.learner.name, "run.learner")
    tracker_names = [tracker.name for tracker in config.run.trackers]
    for number, name in enumerate(tracker_names):
        registry.check_name("trackers", name, f"run.trackers.{number}")
        if name in tracker_names[:number]:
            raise ConfigError(
                f"run.trackers.{number}: '{name}' is named twice, and would log each value twice; "
                "leave one out"
            )
    for number, callback in enumerate(config.run.callbacks):
        registry.check_name("callbacks", callback.name, f"run.callbacks.{number}")


def load_suite(
    source: str | Path | Mapping[str, Any], overrides: Mapping[str, Any] | Sequence[str] = ()
) -> SuiteSettings:
    """Does what `load_config` does, for a suite of comparisons.

    Errors: ConfigError, one line that names the key and the remedy.
    """
    data = dict(source) if isinstance(source, Mapping) else _read_yaml(source)
    data = located(data, _folders(data, source))
    return _validated(SuiteSettings, data, overrides)


def is_suite(source: str | Path) -> bool:
    """Whether a shipped name or a YAML path is a suite of comparisons.

    Errors: ConfigError if `source` is neither the name of a shipped config nor a file.
    """
    return _holds_suite(_read_yaml(source))


def _holds_suite(data: Mapping[str, Any]) -> bool:
    return "sizes" in data and "task" not in data


def _validated(
    cls: type[Settings], data: dict[str, Any], overrides: Mapping[str, Any] | Sequence[str]
) -> Settings:
    pairs = overrides.items() if isinstance(overrides, Mapping) else map(_split, overrides)
    for key, value in pairs:
        if key.count(".") > _DEEPEST:
            raise ConfigError(f"{key[:_SHOWN]} ...: more than {_DEEPEST} sections; correct the key")
        data = _set(data, key.split("."), value, key)
    check_texts(data)
    data = with_secrets(data)
    if cls is Config:
        data = with_base(data)
    if (path := first_surrogate(data)) is not None:
        raise ConfigError(
            f"{dotted_key(path)}: holds half of a surrogate pair, which is no text; correct it"
        )
    try:
        return cls.model_validate(data)
    except ValidationError as error:
        raise ConfigError(one_line(error, data, cls=cls)) from None


def shipped_configs() -> dict[str, Path]:
    """Shipped configs, by name."""
    folder = _configs_folder()
    return {
        path.relative_to(folder).with_suffix("").as_posix(): path
        for path in sorted(folder.rglob("*.yaml"))
    }


def recorded_settings(config: Config) -> dict[str, Any]:
    """Returns the resolved config as plain data for files and trackers, with all defaults included
    all secrets masked, and paths below the config's folder relative to it."""
    settings: dict[str, Any] = masked_settings(config.model_dump(mode="json"))
    return as_written(settings, config.run.folders)


def dump_config(config: Config) -> str:
    """`recorded_settings` as YAML."""
    return yaml.safe_dump(recorded_settings(config), sort_keys=False)


def _configs_folder() -> Path:
    return Path(next(iter(importlib.import_module("colearn.configs").__path__)))


def _read_yaml(source: str | Path) -> dict[str, Any]:
    path = Path(source)
    if path.suffix not in (".yaml", ".yml"):
        known = shipped_configs()
        if str(source) not in known:
            raise ConfigError(
                f"config: '{source}' is no path to a .yaml file and no shipped config; "
                f"{nearest(str(source), known, listed='colearn configs')}"
            )
        path = known[str(source)]
    try:
        exists = path.is_file()
    except OSError as error:  # such as a name that is too long
        raise ConfigError(
            f"config: {str(path)[:_SHOWN]}: {error.strerror}; give a .yaml path or a shipped name"
        ) from None
    if not exists:
        raise ConfigError(f"config: no file {path}; give a .yaml path or a shipped name")
    try:
        data = read_yaml_file(path)
    except ValueError as error:
        raise ConfigError(f"config: {path} is {error}; correct the file") from None
    if not isinstance(data, dict):
        raise ConfigError(f"config: {path} must hold a mapping with task and models")
    return data


def _split(pair: str) -> tuple[str, Any]:
    key, separator, value = pair.partition("=")
    key = key.strip()
    if not separator or not all(key.split(".")):
        raise ConfigError(f"--set {pair}: write dotted.key=value")
    try:
        parsed = parse_yaml(value)
    except ValueError as error:
        raise ConfigError(
            f"--set {pair}: the value is {error}; close brackets and quotes"
        ) from None
    if isinstance(parsed, str) and EXPONENT.fullmatch(parsed):
        return key, float(parsed)
    return key, parsed


def _set(data: Mapping[str, Any], keys: Sequence[str], value: Any, key_path: str) -> dict[str, Any]:
    below = data.get(keys[0])
    if len(keys) == 1:
        return {**data, keys[0]: value}
    if isinstance(below, str) and key_path.startswith(_BY_NAME):
        below = {"name": below}
    if below is not None and not isinstance(below, Mapping):
        raise ConfigError(
            f"{key_path}: {keys[0]} holds a value, not a section; set {keys[0]} itself"
        )
    return {**data, keys[0]: _set(below or {}, keys[1:], value, key_path)}


def with_base(data: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a config's plain data with the paths in `base` inserted where a path is missing or is
    `base.NAME`.

    `base` is a single path, or paths by name. A single path is used for every model and critic
    without a path, and replaces every `base.NAME`. Errors: ConfigError for an unknown name.
    """
    base, resolved = data.get("base"), dict(data)
    if not isinstance(base, str | Mapping):
        return resolved
    models, critic = data.get("models"), data.get("critic")
    if isinstance(models, Mapping):
        resolved["models"] = {
            name: _with_path(model, base, f"models.{name}") for name, model in models.items()
        }
    if isinstance(critic, Mapping) and critic.get("share") is None:
        resolved["critic"] = _with_path(critic, base, "critic")
    return resolved


def _with_path(section: Any, base: str | Mapping[str, Any], field: str) -> Any:
    if not isinstance(section, Mapping):
        return section
    path = section.get("path")
    if path is None:
        return {**section, "path": base} if isinstance(base, str) else section
    if not (isinstance(path, str) and path.startswith(_BASE)):
        return section
    if isinstance(base, str):
        return {**section, "path": base}
    name = path.removeprefix(_BASE)
    if name not in base:
        raise ConfigError(f"{field}.path: base has no '{name}'; {nearest(name, list(base))}")
    return {**section, "path": base[name]}
