"""OpenEnv's importers: an environment of the Open Reward Standard, and Harbor's task folders.

Needs the extra `openenv` and the package openreward; run `pytest -m frameworks`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from colearn.tasks.environment import Environment
from colearn.tasks.harbor.folder import read_tasks
from colearn.tasks.openenv import OpenEnv
from tests.helpers.harbor_tasks import write_task

pytestmark = pytest.mark.frameworks
pytest.importorskip("openenv")
RNG = np.random.default_rng(0)
PAGE = Path(__file__).parents[2] / "docs" / "howto" / "gyms.md"
LAMP = """
from openreward.environments import Environment, Split, TextBlock, ToolOutput, tool
from pydantic import BaseModel


class Press(BaseModel):
    colour: str


class Lamp(Environment):
    @classmethod
    def list_splits(cls):
        return [Split(name="train", type="train")]

    @classmethod
    def list_tasks(cls, split):
        return [{"colour": "red"}, {"colour": "blue"}]

    def get_prompt(self):
        return [TextBlock(type="text", text=f"The lamp is {self.task_spec['colour']}.")]

    @tool
    def press(self, params: Press) -> ToolOutput:
        \"\"\"Press a button.\"\"\"
        paid = float(params.colour == self.task_spec["colour"])
        return ToolOutput(blocks=[TextBlock(type="text", text="click")], reward=paid, finished=True)
"""
SERVE = """
import socket, uvicorn
from lamps.server.app import app
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="warning")).run([listening])
"""
IMPORT = "from openenv.cli.__main__ import main; main()"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of the imported environment's server, which has three sessions."""
    pytest.importorskip("openreward")
    folder = tmp_path_factory.mktemp("ors")
    (folder / "source").mkdir()
    (folder / "source" / "lamp.py").write_text(LAMP)
    words = ("import", "source", "--type", "ors", "--name", "lamps", "--output-dir", ".")
    subprocess.run([sys.executable, "-c", IMPORT, *words], cwd=folder, check=True, timeout=300)
    for name, one, several in (
        ("lamps_environment", "SESSIONS = False", "SESSIONS = True"),
        ("app", "max_concurrent_envs=1", "max_concurrent_envs=3"),
    ):
        path = folder / "lamps" / "server" / f"{name}.py"
        assert one in path.read_text()
        path.write_text(path.read_text().replace(one, several))
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", SERVE], cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True
        )
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.terminate()
        process.wait(600)


def test_the_tools_of_an_imported_environment_are_called_and_pay(served):
    task = OpenEnv(served, reset={"split": "train", "index": 1})
    state = task.reset(task.items("train")[0], RNG)
    assert state.shown == ("{}",)  # the prompt is metadata
    answer = '{"tool_name": "press", "arguments": {"colour": "blue"}}'
    outcome = task.step(state, {"agent": answer}, RNG)
    assert (outcome.reward, outcome.done) == (1.0, True)
    assert "click" in outcome.state.shown[-1]


def test_the_pages_class_shows_the_prompt_and_takes_the_reward(served, tmp_path, monkeypatch):
    [block] = re.findall(r"^```text\n(# presses.py\n.*?)^```$", PAGE.read_text(), re.M | re.S)
    (tmp_path / "presses.py").write_text(block)
    (tmp_path / "rows.jsonl").write_text('{"prompt": "", "index": 0}\n' * 2)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("SERVER", served)
    task = Environment("presses:Presses", path="rows.jsonl", test_share=0.5, horizon=2)
    one, two = (task.reset(task.items("train")[0], RNG) for _ in range(2))  # at once
    assert task.observe(one, "agent").text.endswith("The lamp is red.")
    press = '<tool_call>{"name": "press", "arguments": {"colour": "COLOUR"}}</tool_call>'
    for state, colour, paid in ((one, "red", 1.0), (two, "blue", 0.0)):
        called = task.step(state, {"agent": press.replace("COLOUR", colour)}, RNG)
        assert "click" in task.observe(called.state, "agent").text
        assert task.step(called.state, {"agent": "done"}, RNG).reward == paid


def test_openenv_lists_a_folder_of_harbor_tasks_as_colearn_reads_it(tmp_path):
    from openenv.harbor.tasks import HarborTaskProvider

    for name in ("b", "a"):
        write_task(tmp_path / name)
    listed = HarborTaskProvider([str(tmp_path)]).list_tasks(str(tmp_path))
    assert [(task["task_name"], task["instruction"]) for task in listed] == [
        (task.name, task.instruction) for task in read_tasks(tmp_path)
    ]
