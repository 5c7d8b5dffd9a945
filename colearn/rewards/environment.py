"""Environments of a factory: `reset`, public methods as tools, `get_reward`, as in TRL."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from colearn import registry
from colearn.errors import ConfigError, TaskError, reason_of
from colearn.seeding import OwnGenerators

from .function import reward_number
from .waiting import finish

_NO_TOOLS = ("reset", "get_reward")


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The text of a tool's result, and whether the call failed."""

    tool: str
    text: str
    failed: bool = False


class LiveEnvironment:
    """An environment made by the factory, with its own random generators."""

    def __init__(self, target: str, seed: int, columns: Mapping[str, Any]) -> None:
        self.target, self._generators = target, OwnGenerators(seed)
        with self._generators.drawn_from():
            self.environment = make(target)
            opened = _value(self.environment.reset(**columns))
        if opened is not None and not isinstance(opened, str):
            raise TaskError(
                f"task.factory: reset of '{target}' returned {type(opened).__name__}; return text "
                "or None"
            )
        self.opened = opened or ""

    def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """A tool's result; an error of the tool is its result, as in TRL."""
        try:
            return ToolResult(name, str(self._run(getattr(self.environment, name), **arguments)))
        except Exception as error:  # noqa: BLE001 - the model reads what its call raised
            return ToolResult(name, str({"error": str(error)}), failed=True)

    def rewards(self) -> list[float | None]:
        """`get_reward` as the only element, None if it did not score the episode; empty without
        such a method.

        Errors: TaskError for what is no finite number.
        """
        if not hasattr(self.environment, "get_reward"):
            return []
        value = self._run(self.environment.get_reward)
        return [reward_number(value, f"task.factory: get_reward of '{self.target}'")]

    def _run(self, method: Callable[..., Any], **arguments: Any) -> Any:
        with self._generators.drawn_from():
            return _value(method(**arguments))


def check_factory(target: str) -> None:
    """Check the form of a factory's name, without importing it.

    Errors: ConfigError.
    """
    registry.check_function(target, "task.factory")


def make(target: str) -> Any:
    """A new environment.

    Errors: ConfigError for a target that is no function or class, or makes nothing with `reset`.
    """
    environment = registry.own_function(target, "task.factory")()
    if not inspect.isfunction(getattr(type(environment), "reset", None)):
        raise ConfigError(
            f"task.factory: what '{target}' returns has no method reset; write one, as for TRL"
        )
    return environment


def tool_schemas(target: str) -> tuple[Mapping[str, Any], ...]:
    """The public methods as functions of OpenAI's API, by type hints and docstrings, as in TRL.

    Errors: ConfigError for a method that has no such description.
    """
    from transformers.utils import get_json_schema

    environment = make(target)
    schemas = []
    for name, _ in inspect.getmembers(type(environment), predicate=inspect.isfunction):
        if name in _NO_TOOLS or name.startswith("_"):
            continue
        try:
            schemas.append(get_json_schema(getattr(environment, name))["function"])
        except Exception as error:  # noqa: BLE001 - transformers raises several kinds
            raise ConfigError(
                f"task.factory: method {name} is no tool: {reason_of(error)}"
            ) from None
    return tuple(schemas)


def _value(result: Any) -> Any:
    return finish(result) if inspect.isawaitable(result) else result
