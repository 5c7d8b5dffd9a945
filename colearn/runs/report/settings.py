"""Builds a table of the resolved settings of each algorithm. Settings that differ come first."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from colearn.config import build_algorithm, load_config, part_name
from colearn.config.suite import dotted
from colearn.errors import ConfigError
from colearn.registry import task_class, without_own_code

_LEFT_OUT = ("compare", "run.seed")
"""Keys that no run uses or that differ between seeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A dotted key, and its value for each algorithm as YAML, in the order of the algorithms."""

    key: str
    values: tuple[str, ...]

    @property
    def differs(self) -> bool:
        return len(set(self.values)) > 1


def settings_table(configs: Iterable[Mapping[str, Any]]) -> list[Setting]:
    """Returns the settings in the given configs. `configs` has one run's config, as plain data, for
    each algorithm.

    If a config lacks a key, the table shows a dash for the config's algorithm.
    """
    flat = [dotted(_resolved(config)) for config in configs]
    keys = dict.fromkeys(key for settings in flat for key in settings)
    table = [
        Setting(
            key=key,
            values=tuple(show(settings[key]) if key in settings else "-" for settings in flat),
        )
        for key in keys
        if not any(key == prefix or key.startswith(f"{prefix}.") for prefix in _LEFT_OUT)
    ]
    return sorted(table, key=lambda setting: not setting.differs)


def show(value: Any) -> str:
    """A value as one line of YAML that a config accepts."""
    text = yaml.safe_dump(value, default_flow_style=True, width=1_000_000, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")


def _resolved(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a config with the defaults of its algorithm and task added, where these are
    installed.

    Code that a config names is not imported."""
    resolved = dict(config)
    try:
        with without_own_code():
            algorithm = build_algorithm(load_config(config))
            resolved["algorithm"] = {"name": config["algorithm"]["name"], **_plain(algorithm)}
            parameters = inspect.signature(task_class(config["task"]["name"])).parameters
    except (ConfigError, KeyError):
        return resolved
    defaults = {
        name: parameter.default
        for name, parameter in parameters.items()
        if parameter.default is not parameter.empty
    }
    resolved["task"] = {**_plain(defaults), **config["task"]}
    return resolved


def _plain(value: Any) -> Any:
    """Plain data for YAML: a dataclass as a mapping with its part's name, a tuple as a list,
    anything else as text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        name = part_name(value)
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        value = fields if name is None else {"name": name, **fields}
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(entry) for entry in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
