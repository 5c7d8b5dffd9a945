"""Tools of an MCP server, as workflow tools."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from colearn.errors import ConfigError, reason_of, required
from colearn.programs.workflow import Tool
from colearn.text.notes import note

OPENING = 60.0
"""Seconds within which a server must list its tools."""
_ENDED = "the server has ended; the next call starts it again"
_GUARD = Path(__file__).with_name("_mcp_guard.py")


def mcp_tools(command: Sequence[str], *, timeout: float = 30.0) -> tuple[Tool, ...]:
    """Starts an MCP server with `command`, over standard input and output, and returns its tools.

    Names, descriptions and schemas of the arguments are those that the server announces. The server
    receives exactly the given arguments. A call returns the texts of the server's result and its
    structured content, or a ToolError. Each process of a run starts a separate server at its first
    call; the server ends with that process, even if the server is stalled. If a server ends
    earlier, the calls that it has not answered fail, and the next call starts it again.

    Errors: MissingExtra without the extra `mcp`; ConfigError if no server answers.
    """
    if not command or shutil.which(command[0]) is None:
        line = " ".join(command)
        raise ConfigError(f"tools: no program '{line}'; install it or correct the command")
    offered = _server(tuple(command)).offered
    tools = tuple(Tool(_Remote(tuple(command), one), timeout) for one in offered)
    for tool in tools:
        _ = tool.schema  # an invalid schema is an error now, not at the first call
    return tools


class _Remote:
    """A tool with the server's schema, which connects to the server when called."""

    def __init__(self, command: tuple[str, ...], offered: Any) -> None:
        self.command = command
        self.__name__ = str(offered.name)
        self.__doc__ = offered.description
        self.input_schema = offered.input_schema

    async def __call__(self, /, **arguments: Any) -> str:
        server = await asyncio.to_thread(_server, self.command)
        return await asyncio.wrap_future(server.call(self.__name__, arguments))


class _ToolServer:
    """A server process, with the thread and event loop that communicate with it."""

    def __init__(self, command: tuple[str, ...]) -> None:
        self.mcp: Any = required("mcp", "mcp")
        self.loop = asyncio.new_event_loop()
        self.client: Any = None
        self.ended = False
        self.offered: list[Any] = []
        opened: Future[None] = Future()
        threading.Thread(target=self._run, args=(command, opened), daemon=True).start()
        try:
            opened.result(OPENING)
        except Exception as error:  # noqa: BLE001 - whatever keeps a server from opening, the user is told
            with suppress(RuntimeError):  # the loop is closed
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
        """Sends a call to the server. Errors, in the result: RuntimeError if the server reports a
        failure or ends before it answers."""
        calling = self._call(name, dict(arguments))
        try:
            return asyncio.run_coroutine_threadsafe(calling, self.loop)
        except RuntimeError:  # the loop is closed
            calling.close()
            raise RuntimeError(_ENDED) from None

    async def _call(self, name: str, arguments: dict[str, Any]) -> str:
        try:
            result = await self.client.call_tool(name, arguments)
        except self.mcp.MCPError as error:
            if error.code != self.mcp.types.CONNECTION_CLOSED:
                raise
            self.ended = True
            raise RuntimeError(_ENDED) from None
        text = result_text(result)
        if result.is_error:
            raise RuntimeError(text or "the server reports an error without a text")
        return text

    def _run(self, command: tuple[str, ...], opened: Future[None]) -> None:
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            runner.run(self._talk(command, opened))

    async def _talk(self, command: tuple[str, ...], opened: Future[None]) -> None:
        """Opens the server and keeps it open until the server or this process ends."""
        words = ["-I", "-S", "-B", str(_GUARD), str(os.getpid()), *command]
        parameters = self.mcp.StdioServerParameters(command=sys.executable, args=words)
        closed = asyncio.Event()
        try:
            async with self.mcp.Client(_until_closed(parameters, closed)) as self.client:
                page = await self.client.list_tools()
                self.offered = list(page.tools)
                while page.next_cursor is not None:
                    page = await self.client.list_tools(cursor=page.next_cursor)
                    self.offered += page.tools
                opened.set_result(None)
                await closed.wait()
                self.ended = True
        except BaseException as error:  # raised again by the thread that waits for the server
            self.ended = True
            if opened.done():
                raise
            opened.set_exception(error)


@asynccontextmanager
async def _until_closed(parameters: Any, closed: asyncio.Event) -> AsyncIterator[tuple[Any, Any]]:
    """A server's process and its streams; sets `closed` when the server has closed its output."""
    anyio: Any = required("anyio", "mcp")

    async def forward() -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # the client has left
            async with forwarded:
                async for message in reading:
                    await forwarded.send(message)
        closed.set()

    async with required("mcp.client.stdio", "mcp").stdio_client(parameters) as (reading, writing):
        forwarded, received = anyio.create_memory_object_stream(0)
        forwarding = asyncio.create_task(forward())
        try:
            yield received, writing
        finally:
            forwarding.cancel()


def result_text(result: Any) -> str:
    """The text of a tool's result: its parts, and its structured content unless the parts state
    the same."""
    parts = [text for text in map(_shown, result.content) if text]
    content = result.structured_content
    if content is not None and not _stated(content, parts):
        parts.append(json.dumps(content, ensure_ascii=False))
    return "\n".join(parts)


def _stated(content: Any, texts: Sequence[str]) -> bool:
    """Whether texts are the JSON of a structured content, or of the only entry `result` in which
    servers wrap a value that is not an object."""
    value = content["result"] if content.keys() == {"result"} else content
    return _equals(content, texts) or _equals(value, texts)


def _equals(value: Any, texts: Sequence[str]) -> bool:
    if isinstance(value, list) and len(texts) == len(value) > 1:
        return all(_equals(one, [text]) for one, text in zip(value, texts, strict=True))
    if len(texts) != 1:
        return False
    if isinstance(value, list) and len(value) == 1 and _equals(value[0], texts):
        return True
    try:
        return value == texts[0] or _canonical(json.loads(texts[0])) == _canonical(value)
    except (ValueError, RecursionError):
        return False


def _canonical(value: Any) -> str:
    """The JSON of a value, in which `true` is not 1."""
    return json.dumps(value, sort_keys=True)


def _shown(part: Any) -> str:
    """The text of a part of a result: of an embedded file, its text; of anything without a text,
    its type, so that the model knows that there was one."""
    inside = getattr(part, "resource", part)
    text = getattr(inside, "text", None)
    if text is not None:
        return str(text)
    named = getattr(inside, "uri", None) or getattr(part, "mime_type", None)
    return f"[{part.type}]" if named is None else f"[{part.type}: {named}]"


_servers: dict[tuple[int, tuple[str, ...]], _ToolServer] = {}
"""Servers by process and command: a forked process lacks the threads of its parent's servers."""
_starting: dict[int, threading.Lock] = {}
"""Held while a process starts a server, since several calls may need the server at once."""


def _server(command: tuple[str, ...]) -> _ToolServer:
    """This process's server, which is started if there is none or if it has ended.

    Errors: as for `mcp_tools`.
    """
    key = (os.getpid(), command)
    with _starting.setdefault(os.getpid(), threading.Lock()):
        server = _servers.get(key)
        if server is not None and server.ended:
            note(f"tools: the MCP server '{' '.join(command)}' has ended; it is started again")
        if server is None or server.ended:
            _servers.pop(key, None)
            server = _servers[key] = _ToolServer(command)
        return server
