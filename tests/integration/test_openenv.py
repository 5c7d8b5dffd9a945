"""OpenEnv environments over HTTP: the real package's server and client on the loopback.

Needs the extra `openenv`; run `pytest -m frameworks`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from colearn.contract.testing import check_task
from colearn.errors import TaskError
from colearn.tasks.openenv import OpenEnv
from colearn.tasks.openenv.sessions import _idle_at

pytestmark = pytest.mark.frameworks
pytest.importorskip("openenv")
PROGRAM = Path(__file__).parents[1] / "helpers" / "openenv_lamps.py"
RNG = np.random.default_rng(0)


PAGE = Path(__file__).parents[2] / "docs" / "howto" / "gyms.md"


@contextmanager
def server(*command: str, folder: Path | None = None) -> Iterator[str]:
    """The URL of a program's server; the program prints its port."""
    arguments = [sys.executable, *command]
    process = subprocess.Popen(arguments, cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.terminate()
        process.wait(600)


def serving(name: str, sessions: int):
    return server(str(PROGRAM), name, str(sessions))


@pytest.fixture(scope="module")
def lamps() -> Iterator[str]:
    with serving("lamps", 64) as url:
        yield url


def opened(task, seed=0):
    return task.reset(task.items("train")[0], np.random.default_rng(seed))


def right(state):
    return state.shown[-1].rpartition(" ")[2]


def wrong(state):
    return {"red": "blue", "blue": "red"}[right(state)]


def answered(task, state, said):
    return task.step(state, {"agent": said}, RNG)


def test_an_environment_passes_the_check(lamps):
    task = OpenEnv(lamps, words=("red", "blue", "green"))
    check_task(task, actions=task.legal_action, seeds=(0, 1), episodes=2)


def test_an_episode_earns_what_the_server_pays_and_ends_when_it_says_so(lamps):
    task = OpenEnv(lamps)
    one = answered(task, opened(task), right(opened(task)))
    two = answered(task, one.state, wrong(one.state))
    three = answered(task, two.state, right(two.state))
    assert [o.reward for o in (one, two, three)] == [1.0, -1.0, 1.0]
    assert [o.done for o in (one, two, three)] == [False, False, True]
    assert task.metrics(three.state) == {"reward": 1.0, "refused": 0.0}


def test_a_refused_action_earns_nothing_and_its_reason_is_read_next(lamps):
    task = OpenEnv(lamps)
    outcome = answered(task, opened(task), "green")
    assert (outcome.reward, outcome.done) == (0.0, False)
    assert "no green button" in task.observe(outcome.state, "agent").text
    assert task.metrics(outcome.state)["refused"] == 1.0


def test_a_branch_is_replayed_and_does_not_reach_its_sister(lamps):
    task = OpenEnv(lamps)
    first = answered(task, opened(task), "red").state
    once = answered(task, first, right(first))
    again = answered(task, first, right(first))
    assert once.state.shown == again.state.shown
    assert once.reward == again.reward == 1.0


def test_an_environment_that_ignores_its_seed_is_one_line_when_it_is_replayed():
    with serving("unseeded", 8) as url:
        task = OpenEnv(url)
        state = opened(task)
        answered(task, state, "red")
        with pytest.raises(TaskError, match=r"^task\.url: http.* shows another text when an"):
            answered(task, state, "red")


def test_arguments_reach_the_reset(lamps):
    shown = {opened(OpenEnv(lamps, reset={"first": "blue"}), seed).shown[0] for seed in range(6)}
    assert {text.rpartition(" ")[2] for text in shown} == {"blue"}


def test_more_episodes_than_sessions_are_played_by_replays_and_a_full_server_is_one_line(
    monkeypatch,
):
    with serving("lamps", 2) as url:
        task = OpenEnv(url)
        states = [opened(task, seed) for seed in range(5)]
        assert [answered(task, state, right(state)).reward for state in states] == [1.0] * 5
        with serving("lamps", 1) as small:
            busy = OpenEnv(small)
            session, _ = busy._opened(0)
            monkeypatch.setattr("colearn.tasks.openenv.sessions.PATIENCE", 0.5)
            with pytest.raises(TaskError, match="has no free session; start the server with a lar"):
                opened(busy)
            session.close()


def test_an_ended_episodes_session_serves_the_next_and_one_that_the_server_lost_is_opened_anew():
    with serving("lamps", 1) as url:
        task = OpenEnv(url, horizon=1)
        for seed in range(3):
            state = opened(task, seed)
            assert answered(task, state, right(state)).reward == 1.0
        [session] = _idle_at(url)
        session.close()
        state = opened(task)
        assert _idle_at(url) == []
        assert answered(task, state, right(state)).reward == 1.0


def test_an_action_of_several_fields_is_asked_for_as_json():
    with serving("orders", 8) as url:
        task = OpenEnv(url)
        state = opened(task)
        prompt = task.observe(state, "agent")
        assert prompt.text == '{"asked": "tea", "left": 4}'
        assert prompt.system.startswith("Answer with a JSON object of this schema")
        assert answered(task, state, '{"item": "tea", "count": 3}').reward == 3.0
        refused = answered(task, state, '{"item": "tea", "count": "many"}')
        assert (refused.reward, refused.state.refused) == (0.0, 1)


def test_a_server_that_is_not_there_is_one_line():
    with pytest.raises(TaskError, match=r"^task\.url: http://127\.0\.0\.1:9.*start its server"):
        opened(OpenEnv("http://127.0.0.1:9"))


def test_a_server_that_ends_in_an_episode_is_one_line():
    with serving("lamps", 8) as url:
        task = OpenEnv(url)
        state = opened(task)
        task.observe(state, "agent")
    with pytest.raises(TaskError, match=r"^task\.url: http.*does not answer.*start its server"):
        answered(task, state, "red")


SERVE_PAGE = """
import socket, uvicorn
from lamp_server import app
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="warning")).run([listening])
"""


def test_the_pages_server_and_config_train(tmp_path):
    for name in ("lamp_server.py", "lamps.yaml"):
        [block] = re.findall(rf"^```text\n(# {name}\n.*?)^```$", PAGE.read_text(), re.M | re.S)
        (tmp_path / name).write_text(block)
    with server("-c", SERVE_PAGE, folder=tmp_path) as url:
        sets = (f"task.url={url}", "train.environment_steps=64", "evaluation.episodes=4")
        options = [part for one in sets for part in ("--set", one)]
        subprocess.run(
            [sys.executable, "-m", "colearn", "train", "lamps.yaml", "--out", "run", *options],
            cwd=tmp_path,
            check=True,
            timeout=400,
        )
    assert (tmp_path / "run" / "run.json").is_file()
