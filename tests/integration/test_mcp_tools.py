"""Tools of an MCP server in a workflow: signature, result, failure, another process."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from colearn.errors import ConfigError
from colearn.programs.workflow import ToolError, Workflow
from colearn.programs.workflow.tools import mcp_tools

pytestmark = pytest.mark.slow  # a server's process each
pytest.importorskip("mcp", reason="the extra mcp")

SERVER = """
from mcp.server import MCPServer

server = MCPServer("words")


@server.tool()
def repeat(text: str, times: int = 2) -> str:
    \"\"\"A text again and again.\"\"\"
    if times > 9:
        raise ValueError("too often")
    return " ".join([text] * times)


server.run()
"""


@pytest.fixture(scope="module")
def tool(tmp_path_factory):
    path = tmp_path_factory.mktemp("server") / "words.py"
    path.write_text(SERVER)
    (opened,) = mcp_tools([sys.executable, str(path)])
    return opened


ODD = """
import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

COLOUR = {"type": "string", "enum": ["red", "green"], "description": "of the wall"}
PAINT = {
    "type": "object",
    "properties": {"colour": COLOUR, "coats": {"type": ["integer", "null"], "default": 2},
                   "self": {"type": "string"}},
    "required": ["colour"],
}
EMPTY = {"type": "object", "properties": {}}


async def list_tools(context, params):
    if params is None or params.cursor is None:
        first = types.Tool(name="paint", description="Paints.", input_schema=PAINT)
        return types.ListToolsResult(tools=[first], next_cursor="2")
    look = types.Tool(name="look", input_schema=EMPTY)
    return types.ListToolsResult(tools=[look])


async def call_tool(context, params):
    if params.name == "paint":
        said = [types.TextContent(type="text", text=repr(sorted(params.arguments.items())))]
        return types.CallToolResult(content=said)
    file = types.TextResourceContents(uri="file:///a.txt", text="in the file")
    return types.CallToolResult(
        content=[
            types.TextContent(type="text", text="before"),
            types.EmbeddedResource(type="resource", resource=file),
            types.ImageContent(type="image", data="AAAA", mime_type="image/png"),
        ]
    )


server = Server("odd", on_list_tools=list_tools, on_call_tool=call_tool)


async def main():
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


anyio.run(main)
"""


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    path = tmp_path_factory.mktemp("server") / "odd.py"
    path.write_text(ODD)
    return {tool.name: tool for tool in mcp_tools([sys.executable, str(path)])}


def test_tools_of_every_page_are_offered_with_the_servers_own_schema(odd):
    assert list(odd) == ["paint", "look"]
    colour = odd["paint"].schema["inputSchema"]["properties"]["colour"]
    assert colour == {"type": "string", "enum": ["red", "green"], "description": "of the wall"}


@pytest.mark.parametrize(
    ("given", "received"),
    [
        ({"colour": "red"}, [("colour", "red")]),
        ({"colour": "red", "coats": None}, [("coats", None), ("colour", "red")]),
        ({"colour": "red", "self": "Ada"}, [("colour", "red"), ("self", "Ada")]),
    ],
)
def test_the_server_receives_exactly_the_given_arguments(odd, given, received):
    assert ask(odd["paint"], **given) == repr(received)


def test_what_a_result_has_besides_texts_is_not_dropped(odd):
    assert ask(odd["look"]) == "before\nin the file\n[image: image/png]"


DYING = """
import os
from mcp.server import MCPServer

server = MCPServer("dying")


@server.tool()
def number() -> int:
    return os.getpid()


@server.tool()
def leave() -> str:
    os._exit(3)


server.run()
"""


def test_a_server_that_has_died_is_started_again(tmp_path, capfd):
    path = tmp_path / "dying.py"
    path.write_text(DYING)
    number, leave = mcp_tools([sys.executable, str(path)])
    first = ask(number)
    left = ask(leave)
    assert isinstance(left, ToolError)
    assert left == "leave: RuntimeError: the server has ended; the next call starts it again"
    second = ask(number)
    assert second != first
    os.kill(int(second), signal.SIGKILL)  # between two calls
    assert waits(lambda: not runs(Path(f"/proc/{second}")))
    time.sleep(0.5)
    assert ask(number) not in (first, second)
    assert capfd.readouterr().err.count("it is started again") == 2


def test_a_server_that_cannot_be_started_again_is_reported(tmp_path):
    path = tmp_path / "dying.py"
    path.write_text(DYING)
    number, leave = mcp_tools([sys.executable, str(path)])
    assert isinstance(ask(leave), ToolError)
    path.unlink()
    with pytest.raises(ConfigError, match=r"^tools: no MCP server answers to"):
        ask(number)


def ask(tool, /, *args, **arguments):
    return asyncio.run(tool(tool.spell(tool.bind(args, arguments))))


def test_its_tools_are_called_by_place_and_by_name(tool):
    assert ask(tool, "owl") == "owl owl"
    assert ask(tool, text="owl", times=3) == "owl owl owl"
    assert isinstance(tool.bind(("owl",), {"times": "many"}), ToolError)


def test_what_goes_wrong_there_is_text(tool):
    answer = ask(tool, "owl", times=10)
    assert isinstance(answer, ToolError) and answer.startswith("repeat: ")


def test_a_tool_pickles_and_works_in_another_loop(tool):
    again = pickle.loads(pickle.dumps(tool))
    assert ask(again, "ox", times=1) == "ox"
    assert json.loads(again.spell({"text": "ox"})) == {"text": "ox"}


def test_a_workflow_uses_it_like_any_other(tool):
    class Twice(Workflow[str]):
        agents, horizon, measures = ("a",), 1, ("words",)
        tools = (tool,)

        def items(self, split):
            return ["owl"]

        async def run(self, team, item):
            said = await team.a(await team.repeat(item))
            team.measure(words=len((await team.repeat(said, times=3)).split()))
            team.reward(1.0)

    task = Twice()
    import numpy as np

    rng = np.random.default_rng(0)
    state = task.reset("owl", rng)
    assert task.observe(state, "a").text == "owl owl"
    outcome = task.step(state, {"a": "x y"}, rng)
    assert task.metrics(outcome.state) == {"words": 6.0}


def test_a_command_that_starts_no_server_is_named():
    with pytest.raises(ConfigError, match="no MCP server answers to 'false'"):
        mcp_tools(["false"])


def test_a_server_that_says_nothing_in_time_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr("colearn.programs.workflow.tools.mcp.OPENING", 3.0)
    # it stays when its input ends: a server is also told to end
    mute = "import sys, time; sys.stdin.read(); time.sleep(3600)"
    with pytest.raises(ConfigError, match="no MCP server answers to"):
        mcp_tools([sys.executable, "-c", mute, str(tmp_path)])
    assert waits(lambda: not running(str(tmp_path)))


def test_a_command_that_is_not_there_is_named():
    with pytest.raises(ConfigError, match=r"^tools: no program 'no-such-program -x'"):
        mcp_tools(["no-such-program", "-x"])


STALLED = """
import os, signal, subprocess, sys, time
from mcp.server import MCPServer

server = MCPServer("stalled")


@server.tool()
async def stall() -> str:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with open(sys.argv[1] + ".part", "w") as file:
        file.write(f"{os.getpid()} {child.pid}")
    os.rename(sys.argv[1] + ".part", sys.argv[1])
    time.sleep(600)  # its loop reads nothing any more, the end of its input neither


server.run()
"""
TRAINER = """
import asyncio, sys
from colearn.programs.workflow.tools import mcp_tools

(tool,) = mcp_tools([sys.executable, *sys.argv[1:]])
asyncio.run(tool("{}"))
"""


def test_a_stalled_server_ends_with_a_trainer_that_dies(tmp_path):
    server, trainer, noted = (tmp_path / name for name in ("server.py", "trainer.py", "pids"))
    server.write_text(STALLED)
    trainer.write_text(TRAINER)
    words = [sys.executable, str(trainer), str(server), str(noted)]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL) as process:
        try:
            assert waits(noted.exists)
        finally:
            process.kill()
    left = [Path(f"/proc/{number}") for number in noted.read_text().split()]
    assert len(left) == 2
    assert waits(lambda: not any(map(runs, left)))


def waits(for_this):
    until = time.monotonic() + 600
    while not for_this() and time.monotonic() < until:
        time.sleep(0.1)
    return for_this()


def running(argument):
    """The processes whose command ends in it."""
    commands = {path.parent: path for path in Path("/proc").glob("[0-9]*/cmdline")}
    return [process for process, path in commands.items() if ends_in(path, argument)]


def ends_in(command, argument):
    try:
        return command.read_text().split("\0")[-2:] == [argument, ""]
    except OSError:
        return False


def runs(process):
    """Whether it is there and is more than an entry that nobody has collected."""
    try:
        return process.joinpath("stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
