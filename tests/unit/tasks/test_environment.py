"""Environments with TRL's interface as tasks."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from colearn.contract.testing import check_task
from colearn.errors import ConfigError, TaskError
from colearn.tasks.environment import Environment
from tests.helpers.trl_environments import SEEN

RNG = np.random.default_rng(0)


def press(colour):
    return f'<tool_call>{{"name": "press", "arguments": {{"colour": "{colour}"}}}}</tool_call>'


LOOK = '<tool_call>{"name": "look", "arguments": {}}</tool_call>'
WAIT = '<tool_call>{"name": "wait", "arguments": {"seconds": 2}}</tool_call>'


def mine(name):
    return f"tests.helpers.trl_environments:{name}"


def buttons(tmp_path, **settings):
    rows = [{"prompt": f"Room {k}: ", "colour": c} for k, c in enumerate(("red", "blue") * 5)]
    path = tmp_path / "rooms.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return Environment(mine("Buttons"), path=str(path), **settings)


def play(task, *said, item=0, seed=0):
    outcome, state = None, task.reset(task.items("train")[item], np.random.default_rng(seed))
    for text in said:
        assert outcome is None or not outcome.done
        outcome = task.step(state, {"agent": text}, RNG)
        state = outcome.state
    return outcome


def test_an_environment_passes_the_check(tmp_path):
    task = buttons(tmp_path, words=(press("red"), press("green"), LOOK, "done"))
    check_task(task, actions=task.legal_action, seeds=(0, 1), episodes=2)


def test_the_first_prompt_joins_the_row_and_what_reset_returned(tmp_path):
    task = buttons(tmp_path)
    item = next(item for item in task.items("train") if item.columns["prompt"] == "Room 3: ")
    assert task.observe(task.reset(item, RNG), "agent").text == "Room 3: the lamp is blue"


def test_public_methods_are_announced_as_transformers_describes_them(tmp_path):
    task = buttons(tmp_path)
    system = task.observe(task.reset(task.items("train")[0], RNG), "agent").system
    look, press_ = map(
        json.loads, re.search("<tools>\n(.*)\n</tools>", system, re.S)[1].split("\n")
    )
    assert (look["name"], press_["name"]) == ("look", "press")
    assert press_["parameters"] == {
        "type": "object",
        "properties": {"colour": {"type": "string", "description": "The colour of the button."}},
        "required": ["colour"],
    }


def test_an_answer_without_a_call_ends_the_episode_with_the_environments_reward(tmp_path):
    task = buttons(tmp_path)
    assert play(task, press("red"), "done").reward == 1.0
    assert play(task, press("blue"), "done").reward == 0.0
    assert play(task, "done").done


def test_results_of_calls_are_shown_in_order_and_errors_are_results(tmp_path):
    task = buttons(tmp_path)
    outcome = play(task, LOOK + press("green"))
    assert not outcome.done and outcome.reward == 0.0
    assert task.observe(outcome.state, "agent").text == (
        "<tool_response>red</tool_response>\n"
        "<tool_response>{'error': 'no green button'}</tool_response>"
    )
    assert task.metrics(outcome.state) == {"reward": None, "calls": 2.0, "failures": 1.0}


def test_the_calls_of_the_last_answer_are_not_run(tmp_path):
    outcome = play(buttons(tmp_path, horizon=2), LOOK, press("red"))
    assert outcome.done and outcome.reward == 0.0


def test_a_branch_replays_what_was_drawn_and_does_not_reach_its_sister(tmp_path):
    task = buttons(tmp_path)
    first = play(task, press("red"))
    once = task.step(first.state, {"agent": press("red")}, RNG)
    again = task.step(first.state, {"agent": press("red")}, RNG)
    assert once.state.shown == again.state.shown != first.state.shown
    assert task.step(first.state, {"agent": "done"}, RNG).reward == 1.0


def test_without_data_the_environment_draws_from_the_episodes_seed():
    task = Environment(mine("Buttons"))
    lamps = {task.reset(task.items("test")[0], np.random.default_rng(k)).shown for k in range(8)}
    assert lamps == {"the lamp is red", "the lamp is blue"}


def test_reward_functions_receive_environments_rows_and_messages():
    SEEN.clear()
    task = Environment(mine("Silent"), reward=mine("waited"))
    assert play(task, WAIT, WAIT, "done").reward == 4.0
    [completion] = SEEN[-1]["completions"]
    assert [m["role"] for m in completion] == [
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]
    assert completion[1] == {"role": "tool", "name": "wait", "content": "2"}
    assert completion[0]["tool_calls"][0]["function"]["name"] == "wait"


def odd(tmp_path, row, **settings):
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join([json.dumps(row)] * 2))
    return Environment(mine("Odd"), path=str(path), **settings)


def test_methods_for_its_own_use_are_no_tools(tmp_path):
    task = odd(tmp_path, {"pays": 1.0})
    assert task.tools == ()
    assert play(task, '<tool_call>{"name": "_cheat", "arguments": {}}</tool_call>').reward == 1.0


def test_a_reward_of_none_is_not_scored_unless_a_function_scores_the_episode(tmp_path):
    assert play(odd(tmp_path, {"pays": None}), "done").reward is None
    paid = odd(tmp_path, {"pays": None, "level": 2}, reward=mine("paid"))
    assert play(paid, "done").reward == 2.0
    none = odd(tmp_path, {"pays": None, "level": 0}, reward=mine("paid"))
    outcome = play(none, "done")
    assert outcome.reward is None and none.metrics(outcome.state)["reward"] is None


def test_an_environment_that_nothing_scores_is_refused():
    with pytest.raises(TaskError, match=r"^task\.reward: '.*:Silent' has no method get_reward"):
        play(Environment(mine("Silent")), "done")


def test_a_reward_that_is_not_finite_is_one_line(tmp_path):
    with pytest.raises(TaskError, match=r"^task\.factory: get_reward of '.*:Odd' returned inf"):
        play(odd(tmp_path, {"pays": "inf"}), "done")


def test_what_reset_returns_is_text_or_nothing(tmp_path):
    with pytest.raises(TaskError, match=r"^task\.factory: reset of '.*' returned int; return text"):
        play(odd(tmp_path, {"opens": 3}), "done")


def test_reward_functions_receive_the_rows_columns_and_may_add_nothing(tmp_path):
    SEEN.clear()
    row = {"prompt": "go", "pays": 1.0, "level": 4, "completion": "x", "completion_ids": [1]}
    assert play(odd(tmp_path, row, reward=mine("paid")), "done").reward == 1.0 + 4.0
    assert SEEN[-1]["prompts"] == ["go"] and SEEN[-1]["pays"] == [1.0]
    assert "completion" not in SEEN[-1] and "completion_ids" not in SEEN[-1]
    none = odd(tmp_path, row | {"level": 0}, reward=mine("paid"))
    assert play(none, "done").reward == 1.0


def test_a_row_is_trained_on_or_held_out(tmp_path):
    task = buttons(tmp_path, test_share=0.2)
    test = [item.columns["prompt"] for item in task.items("test")]
    train = [item.columns["prompt"] for item in task.items("train")]
    assert len(test) == 2
    assert train == [f"Room {k}: " for k in range(10) if f"Room {k}: " not in test]


def test_a_reward_that_is_a_text_is_one_line(tmp_path):
    with pytest.raises(
        TaskError,
        match=r"^task\.factory: get_reward of '.*' returned '3'; return a number instead of a text",
    ):
        play(odd(tmp_path, {"pays": "3"}), "done")


@pytest.mark.parametrize(
    ("factory", "told"),
    [
        ("NoReset", "has no method reset"),
        ("Undescribed", "method press is no tool"),
        ("Missing", "has no 'Missing'"),
    ],
)
def test_a_factory_that_cannot_be_used_is_one_line(factory, told):
    with pytest.raises(ConfigError, match=rf"task.factory: .*{told}"):
        task = Environment(mine(factory))
        task.observe(task.reset(task.items("train")[0], RNG), "agent")
