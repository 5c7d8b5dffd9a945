"""Environments with TRL's factory interface: `reset`, public methods as tools, `get_reward`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from colearn.contract.seeding import OwnGenerators
from colearn.errors import ConfigError, TaskError, reason_of
from colearn.registry.own_code import check_function, own_function
from colearn.text.json_value import copied
from colearn.text.notes import note
from colearn.text.printable import is_unicode

from ..rewards.function import reward_number
from ..rewards.waiting import finish
from .own_thread import CallStopped, NotReturned, OwnThread

_NO_TOOLS = ("aclose", "close", "get_reward", "render", "reset", "seed", "step")
"""Public methods that belong to a framework (TRL, Gymnasium) and are never offered to a model."""
TIMEOUT = 30.0
"""Time limit of a tool call in seconds, as in workflows."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The text of a tool's result, and whether the call failed."""

    tool: str
    text: str
    failed: bool = False


class EpisodeEnded(Exception):
    """Raised when a tool has raised SystemExit or a similar exception, which ends only the tool's
    episode."""


class LiveEnvironment:
    """An environment made by the factory, with a separate thread and random generators.

    Errors: TaskError if `reset` raises, or returns anything but a text or None.
    """

    def __init__(
        self, target: str, seed: int, columns: Mapping[str, Any], *, timeout: float = TIMEOUT
    ) -> None:
        self.target, self.timeout = target, timeout
        self._generators, self._thread = OwnGenerators(seed), OwnThread(target)
        self.environment: Any = None
        self.hung = False
        """Whether a tool has failed to return in time; later calls then fail, and the episode is
        not scored."""
        try:
            self.environment = self._unlimited(target, lambda: make(target))
            row = copied(columns)
            opened = self._unlimited("reset", lambda: _value(self.environment.reset(**row)))
            if opened is not None and not isinstance(opened, str):
                raise TaskError(
                    f"task.factory: reset of '{target}' returned {type(opened).__name__}; return "
                    "text or None"
                )
        except BaseException:
            self.close()
            raise
        self.opened = opened or ""

    def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """The result of a tool call. As in TRL, an error of the tool is returned as the result. A
        result without a text form is an error of the tool, too.

        Errors: EpisodeEnded if the tool raises SystemExit, KeyboardInterrupt or a similar
        exception.
        """
        method = getattr(self.environment, name)
        try:
            with self._generators.drawn_from():
                return ToolResult(name, self._limited(lambda: _shown(_value(method(**arguments)))))
        except CallStopped as error:
            raise EpisodeEnded(f"{name} raised {error}") from error
        except Exception as error:  # noqa: BLE001 - the model reads what its call raised
            return ToolResult(name, str({"error": _said(error)}), failed=True)

    def rewards(self) -> list[float | None]:
        """Returns a list with the value of `get_reward`, or an empty list if the environment has no
        such method. The value is None if the method did not score the episode, or if a tool has not
        returned.

        Errors: TaskError for a value that is not a finite number.
        """
        if not hasattr(self.environment, "get_reward"):
            return []
        if self.hung:
            return [None]
        value = self._unlimited("get_reward", lambda: _value(self.environment.get_reward()))
        return [reward_number(value, f"task.factory: get_reward of '{self.target}'")]

    def close(self) -> None:
        """Call the environment's `close`, if it has one, and end the thread. An error of `close` is
        reported as a note. If a tool has not returned, `close` runs concurrently and the tool is
        abandoned."""
        if self.hung:
            self._thread.end()
            self._thread = OwnThread(self.target)
        environment = self.environment
        try:
            self._thread.run(lambda: _closed(environment, self.target), self.timeout)
        except (CallStopped, NotReturned) as error:
            note(f"task.factory: close of '{self.target}' failed: {reason_of(error)}")
        self._thread.end()

    def _limited(self, work: Callable[[], Any]) -> Any:
        """Errors: NotReturned after the time limit, and immediately for every later call."""
        if self.hung:
            raise NotReturned("an earlier call has not returned")
        try:
            return self._thread.run(work, self.timeout)
        except NotReturned:
            self.hung = True
            raise

    def _unlimited(self, name: str, work: Callable[[], Any]) -> Any:
        """Errors: TaskError if a method other than a tool raises SystemExit or a similar
        exception."""
        try:
            with self._generators.drawn_from():
                return self._thread.run(work)
        except CallStopped as error:
            raise TaskError(
                f"task.factory: {name} of '{self.target}' raised {error}; raise an "
                "Exception instead"
            ) from error


def check_factory(target: str) -> None:
    """Check the form of a factory's name, without importing it.

    Errors: ConfigError.
    """
    check_function(target, "task.factory")


def make(target: str) -> Any:
    """A new environment.

    Errors: ConfigError for a target that is not a function or class, or whose object has no
    `reset`.
    """
    environment = own_function(target, "task.factory")()
    if not inspect.isfunction(getattr(type(environment), "reset", None)):
        raise ConfigError(
            f"task.factory: what '{target}' returns has no method reset; write one, as for TRL"
        )
    return environment


def tool_schemas(target: str) -> tuple[Mapping[str, Any], ...]:
    """The public methods as function schemas of OpenAI's API, built from type hints and docstrings,
    as in TRL.

    Errors: ConfigError for a method that yields, or that has no type hints and docstring.
    """
    from transformers.utils import get_json_schema

    environment = make(target)
    schemas = []
    for name, method in inspect.getmembers(type(environment), predicate=inspect.isfunction):
        if name in _NO_TOOLS or name.startswith("_"):
            continue
        if inspect.isgeneratorfunction(method) or inspect.isasyncgenfunction(method):
            raise ConfigError(f"task.factory: method {name} is no tool: it yields; return a text")
        try:
            schemas.append(get_json_schema(getattr(environment, name))["function"])
        except Exception as error:  # noqa: BLE001 - transformers raises several kinds
            raise ConfigError(
                f"task.factory: method {name} is no tool: {reason_of(error)}"
            ) from None
    _closed(environment, target)  # it was made for its methods alone
    return tuple(schemas)


def _closed(environment: Any, target: str) -> None:
    close = getattr(environment, "close", None)
    try:
        if callable(close):
            _value(close())
    except Exception as error:  # noqa: BLE001 - the episode is over and scored
        note(f"task.factory: close of '{target}' failed: {reason_of(error)}")


def _shown(result: Any) -> str:
    """The text of a tool's result.

    Errors: TypeError for a generator, whose text would be its address in memory; ValueError for a
    text that is not valid Unicode.
    """
    if inspect.isgenerator(result) or inspect.isasyncgen(result):
        raise TypeError("the tool yields; its result must be a text")
    text = str(result)
    if not is_unicode(text):
        raise ValueError("the result has half of a surrogate pair, which is no text")
    return text


def _said(error: Exception) -> str:
    """The message of an exception, also if its class raises instead of giving one."""
    try:
        return str(error)
    except (Exception, SystemExit):  # noqa: BLE001 - the class of the exception is foreign code
        return reason_of(error)


def _value(result: Any) -> Any:
    return finish(result) if inspect.isawaitable(result) else result
