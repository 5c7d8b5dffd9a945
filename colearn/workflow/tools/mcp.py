"""Tools of an MCP server, as workflow tools."""

from __future__ import annotations

import asyncio
import inspect
import json
import keyword
import os
import shutil
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from functools import lru_cache
from pathlib import Path
from typing import Any

from colearn.errors import ConfigError, reason_of, required
from colearn.workflow import Tool

OPENING = 60.0
"""Seconds within which a server must list its tools."""
_GUARD = Path(__file__).with_name("_mcp_guard.py")
_KINDS = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
    "object": dict,
}


def mcp_tools(command: Sequence[str], *, timeout: float = 30.0) -> tuple[Tool, ...]:
    """Starts an MCP server with `command`, over standard input and output, and returns its tools.

    Names, descriptions and arguments are those that the server announces. A call returns the text
    of the server's result, or a ToolError. Each process of a run starts a separate server at its
    first call; the server ends with that process, even if the server is stalled.

    Errors: MissingExtra without the extra `mcp`; ConfigError if no server answers.
    """
    if not command or shutil.which(command[0]) is None:
        line = " ".join(command)
        raise ConfigError(f"tools: no program '{line}'; install it or correct the command")
    server = _server(tuple(command), os.getpid())
    return tuple(Tool(_Remote(tuple(command), offered), timeout) for offered in server.offered)


class _Remote:
    """A tool with the server's signature, which connects to the server when called."""

    def __init__(self, command: tuple[str, ...], offered: Any) -> None:
        self.command = command
        self.__name__ = str(offered.name)
        self.__doc__ = offered.description
        self.input_schema = offered.input_schema
        self.__signature__ = _signature(self.__name__, self.input_schema)

    async def __call__(self, **arguments: Any) -> str:
        used_arguments = {
            name: value
            for name, value in arguments.items()
            if value is not None or not self._left_out(name)
        }
        server = await asyncio.to_thread(_server, self.command, os.getpid())
        return await asyncio.wrap_future(server.call(self.__name__, used_arguments))

    def _left_out(self, name: str) -> bool:
        """Whether None stands for an argument that was not given: one that is optional and has no
        default."""
        required = self.input_schema.get("required", ())
        return name not in required and "default" not in self.input_schema["properties"][name]


class _ToolServer:
    """A server process, with the thread and event loop that communicate with it."""

    def __init__(self, command: tuple[str, ...]) -> None:
        self.mcp: Any = required("mcp", "mcp")
        self.loop = asyncio.new_event_loop()
        self.client: Any = None
        self.offered: list[Any] = []
        opened: Future[None] = Future()
        threading.Thread(target=self._run, args=(command, opened), daemon=True).start()
        try:
            opened.result(OPENING)
        except Exception as error:  # noqa: BLE001 - whatever keeps a server from opening, the user is told
            self.loop.call_soon_threadsafe(self._stop)
            raise ConfigError(
                f"tools: no MCP server answers to '{' '.join(command)}' ({type(error).__name__}: "
                f"{reason_of(error)}); give a command that starts one on its standard input"
            ) from None

    def _stop(self) -> None:
        """Stops a server that has not opened in time."""
        for task in asyncio.all_tasks(self.loop):
            task.cancel()

    def call(self, name: str, arguments: Mapping[str, Any]) -> Future[str]:
        return asyncio.run_coroutine_threadsafe(self._call(name, dict(arguments)), self.loop)

    async def _call(self, name: str, arguments: dict[str, Any]) -> str:
        result = await self.client.call_tool(name, arguments)
        text = "\n".join(map(_shown, result.content))
        if not result.content and result.structured_content is not None:
            text = json.dumps(result.structured_content, ensure_ascii=False)
        if result.is_error:
            raise RuntimeError(text)
        return text

    def _run(self, command: tuple[str, ...], opened: Future[None]) -> None:
        self.loop.run_until_complete(self._talk(command, opened))

    async def _talk(self, command: tuple[str, ...], opened: Future[None]) -> None:
        """Opens the server and keeps it open until this process ends."""
        words = ["-I", "-S", "-B", str(_GUARD), str(os.getpid()), *command]
        parameters = self.mcp.StdioServerParameters(command=sys.executable, args=words)
        try:
            async with self.mcp.Client(parameters) as self.client:
                page = await self.client.list_tools()
                self.offered = list(page.tools)
                while page.next_cursor is not None:
                    page = await self.client.list_tools(cursor=page.next_cursor)
                    self.offered += page.tools
                opened.set_result(None)
                await asyncio.Event().wait()
        except BaseException as error:  # raised again by the thread that waits for the server
            if opened.done():
                raise
            opened.set_exception(error)


def _shown(part: Any) -> str:
    """The text of a part of a result: of an embedded file, its text; of anything without a text,
    its type, so that the model knows that there was one."""
    inside = getattr(part, "resource", part)
    text = getattr(inside, "text", None)
    if text is not None:
        return str(text)
    named = getattr(inside, "uri", None) or getattr(part, "mime_type", None)
    return f"[{part.type}]" if named is None else f"[{part.type}: {named}]"


@lru_cache(maxsize=16)
def _server(command: tuple[str, ...], process: int) -> _ToolServer:
    return _ToolServer(command)  # keyed by `process`: a forked process lacks the server's thread


def _signature(tool: str, schema: Mapping[str, Any]) -> inspect.Signature:
    """Returns the signature of a JSON schema's arguments; optional ones have defaults.

    Errors: ConfigError for an argument that is not a Python name.
    """
    required = set(schema.get("required", ()))
    parameters = []
    offered = schema.get("properties", {})
    for name in sorted(offered, key=lambda name: name not in required):
        if not name.isidentifier() or keyword.iskeyword(name):
            raise ConfigError(
                f"tools: the MCP tool {tool} takes {name!r}, which is not a Python argument "
                "name; rename it in the server"
            )
        about = offered[name]
        type_name = about.get("type")  # a list if several types are allowed
        kind: Any = _KINDS.get(type_name, Any) if isinstance(type_name, str) else Any
        default = inspect.Parameter.empty
        if name not in required:
            default, kind = about.get("default"), kind | None if kind is not Any else Any
        parameters.append(
            inspect.Parameter(
                name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=kind
            )
        )
    return inspect.Signature(parameters)
