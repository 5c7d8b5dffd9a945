"""Tools: async functions with a schema, whose failures are returned as text."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter

from colearn.errors import ColearnError, reason_of
from colearn.text.plain_data import in_order

from .arguments import SignatureArguments, signature_arguments
from .record import Call, CallResult
from .schema_arguments import SchemaArguments

LONGEST_LINE = 300


class ToolError(str):
    """A tool's failure as one line of text, which a role can observe."""


class _Stopped(Exception):
    """Raised when a function has raised SystemExit or a similar exception."""


@dataclass(frozen=True)
class Tool:
    """An async function that a run or a role may call.

    The state records the result, so the result must be plain data or text. For repeatable runs, the
    result must be deterministic. The schema is derived from signature and docstring, in MCP's
    format.
    """

    function: Callable[..., Awaitable[Any]]
    timeout: float = 30.0
    """Seconds until a call fails with a ToolError."""

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.__name__

    @property
    def schema(self) -> dict[str, Any]:
        """Name, description and JSON schema of the arguments. A function with an attribute
        `input_schema` states its own."""
        return {
            "name": self.name,
            "description": inspect.cleandoc(self.function.__doc__ or ""),
            "inputSchema": self._arguments.schema,
        }

    def bind(self, args: Sequence[Any], arguments: Mapping[str, Any]) -> dict[str, Any] | ToolError:
        """Validates the arguments and returns those that are given by name, as JSON's types. If
        they are invalid, returns (does not raise) a ToolError."""
        try:
            return self._arguments.bind(args, arguments)
        except (TypeError, ValueError) as error:
            return ToolError(_line(error))

    def spell(self, arguments: Mapping[str, Any]) -> str:
        """Returns arguments as JSON with sorted keys."""
        return json.dumps(arguments, sort_keys=True, ensure_ascii=False)

    async def __call__(self, text: str) -> Any:
        """Calls the tool with arguments as JSON, which the function receives as the types of its
        signature; returns its result or a ToolError.

        Errors: ColearnError, which ends the run: only a user can correct its cause.
        """
        try:
            values = self._arguments.read(json.loads(text))
            result = await asyncio.wait_for(self._result(values), self.timeout)
            plain(result).encode()  # a result without a text form fails here
        except TimeoutError:
            return ToolError(f"{self.name}: no result within {self.timeout:g} seconds")
        except ColearnError:
            raise
        except _Stopped as stopped:
            return ToolError(f"{self.name}: {stopped}")
        except Exception as error:  # noqa: BLE001 - every failure is reported to the caller
            return ToolError(f"{self.name}: {type(error).__name__}: {_line(error)}")
        return result

    @property
    def _arguments(self) -> SignatureArguments | SchemaArguments:
        schema = getattr(self.function, "input_schema", None)
        if schema is None:
            return signature_arguments(self.function)
        return _schema_arguments(self.name, json.dumps(schema))

    async def _result(self, values: Mapping[str, Any]) -> Any:
        """Returns the result of the function. Errors: `_Stopped` in place of SystemExit and similar
        exceptions, which would end the event loop, and in place of a CancelledError that the
        function raises itself."""
        try:
            return await self.function(**values)
        except (Exception, KeyboardInterrupt):
            raise
        except BaseException as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():  # the time limit or an interruption
                raise
            raise _Stopped(f"{type(error).__name__}: {reason_of(error)}") from error


@lru_cache(maxsize=256)
def _schema_arguments(tool: str, schema: str) -> SchemaArguments:
    """The arguments of a JSON schema, cached because checking a schema is slow."""
    return SchemaArguments(tool, json.loads(schema))


def run_tools(calls: Sequence[Call], tools: Mapping[str, Tool]) -> list[CallResult]:
    """Runs all calls concurrently; returns results in order. No event loop may be running."""

    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*(tools[call.name](call.text) for call in calls))

    results = _runner().run(all_of_them())
    return [
        CallResult(call=call, result=result) for call, result in zip(calls, results, strict=True)
    ]


class _Kept(threading.local):
    """Keeps one event loop per thread for tools, because creating an event loop is slow."""

    runner: asyncio.Runner | None = None
    process = 0


_KEPT = _Kept()


def _runner() -> asyncio.Runner:
    if _KEPT.runner is None or _KEPT.process != os.getpid():  # a forked child needs its own loop
        _KEPT.runner, _KEPT.process = asyncio.Runner(), os.getpid()
    return _KEPT.runner


def _line(error: Exception) -> str:
    line = " ".join(str(error).split())[:LONGEST_LINE]
    return line.encode(errors="replace").decode()


def plain(value: Any) -> str:
    """Returns a tool's result as a role observes it: text unchanged, other values as JSON."""
    if isinstance(value, str):
        return value
    return TypeAdapter(Any).dump_json(in_order(value)).decode()
