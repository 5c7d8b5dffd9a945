"""Ends of environments: closed after every episode, whatever their tools do."""

from __future__ import annotations

import json

import numpy as np
import pytest

from colearn.contract.checked_task import CheckedTask
from colearn.errors import TaskError
from colearn.rollout.agents import Program
from colearn.rollout.agents.programs import Says
from colearn.rollout.grow import grow
from colearn.rollout.shapes import Chain, KaryTree, Parallel
from colearn.tasks.environment import Environment
from tests.helpers.trl_environments import OPEN

RNG = np.random.default_rng(0)


def call(name, **arguments):
    said = json.dumps({"name": name, "arguments": arguments})
    return f"<tool_call>{said}</tool_call>"


ADD = call("add", number=1)


@pytest.fixture(autouse=True)
def nothing_open():
    OPEN.clear()


def counted(name="Counted", **settings):
    return Environment(f"tests.helpers.trl_environments:{name}", **settings)


def begun(task, item=0):
    return task.reset(task.items("train")[item], np.random.default_rng(0))


def play(task, *said):
    state = begun(task)
    for text in said:
        outcome = task.step(state, {"agent": text}, RNG)
        state = outcome.state
    return outcome


def failing(tmp_path, where):
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join([json.dumps({"prompt": "go", "fails": where})] * 2))
    return counted(path=str(path))


def test_an_episode_closes_its_environment_at_an_answer_without_a_call():
    assert play(counted(), ADD, "done").reward == 1.0
    assert OPEN == []


def test_an_episode_closes_its_environment_at_the_horizon():
    assert play(counted(horizon=2), ADD, ADD).done
    assert OPEN == []


def test_the_description_of_tools_leaves_no_environment_open():
    task = counted()
    assert [tool["name"] for tool in task.tools] == [
        *("add", "interrupt", "leave", "rest", "same_thread")
    ]
    assert OPEN == []


def test_a_call_of_a_frameworks_method_is_text():
    task = counted()
    assert play(task, call("close")).done
    assert play(task, call("step", action=1)).done
    assert OPEN == []


@pytest.mark.parametrize("where", ["reset", "get_reward"])
def test_an_environment_that_fails_is_closed(tmp_path, where):
    with pytest.raises(ValueError, match=r"no board|no score"):
        play(failing(tmp_path, where), ADD, "done")
    assert OPEN == []


def test_the_task_closes_the_environments_of_episodes_that_did_not_end():
    task = counted()
    first, second = begun(task), begun(task)
    task.step(first, {"agent": ADD}, RNG)
    task.step(second, {"agent": ADD}, RNG)
    assert len(OPEN) == 1  # equal episodes: the same play is kept once
    task.close()
    assert OPEN == []


@pytest.mark.parametrize("shape", [Chain(), Parallel(k=3), KaryTree(k=2)])
def test_every_branch_of_a_rollout_closes_its_environment(shape):
    task = counted(horizon=3)
    players = {"agent": Program(Says(text=ADD))}
    grow(task, task.items("train")[:4], players, shape, seed=0)
    assert OPEN == []


def test_branches_that_were_left_are_closed_with_the_episode():
    task = counted()
    root = begun(task)
    for number in (1, 2, 3):
        task.step(root, {"agent": call("add", number=number)}, RNG)
    state = task.step(root, {"agent": ADD + ADD}, RNG).state
    assert len(OPEN) == 4
    state = task.step(state, {"agent": ADD}, RNG).state
    assert task.step(state, {"agent": "done"}, RNG).done
    assert OPEN == []


def test_a_tool_that_sleeps_fails_after_the_limit_and_the_episode_is_not_scored():
    task = counted(timeout=1.0)
    outcome = play(task, call("rest"), ADD, "done")
    [[rest], [add], []] = outcome.state.results
    assert rest.text == "{'error': 'no result within 1 seconds'}"
    assert add.text == "{'error': 'an earlier call has not returned'}"
    assert outcome.done and outcome.reward is None
    assert OPEN == []


@pytest.mark.parametrize(
    ("tool", "told"),
    [("leave", "leave raised SystemExit"), ("interrupt", "interrupt raised KeyboardInterrupt")],
)
def test_a_tool_that_exits_ends_its_episode_alone(tool, told):
    task = counted()
    outcome = CheckedTask(task, "item").step(begun(task), {"agent": call(tool)}, RNG)
    assert outcome.done and outcome.reward is None
    assert outcome.state.results[-1][-1].text == told
    assert task.metrics(outcome.state)["failures"] == 1.0
    assert OPEN == []
    assert play(task, ADD, "done").reward == 1.0


def test_all_calls_of_an_environment_run_in_one_thread():
    task = counted()
    [[result]] = play(task, call("same_thread")).state.results
    task.close()
    assert result.text == "True"


def test_a_close_that_fails_is_a_note(capsys):
    assert play(counted("BadClose"), "done").reward == 1.0
    line = "note: task.factory: close of 'tests.helpers.trl_environments:BadClose' failed: gone\n"
    assert capsys.readouterr().err in (line, 2 * line)  # the one that was asked for its tools


def test_the_limit_is_a_number_of_seconds():
    with pytest.raises(Exception, match=r"^task\.timeout: "):
        counted(timeout=0.0)


def test_an_error_names_the_item(tmp_path):
    task = failing(tmp_path, "get_reward")
    item = task.items("train")[0]
    state = task.reset(item, RNG)
    with pytest.raises(TaskError, match=r"no score.*item 'line 1 of"):
        CheckedTask(task, str(item)).step(state, {"agent": "done"}, RNG)
