"""What reward functions of a data set are told, what their rewards add up to, and who is paid."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import numpy as np
import pytest

from colearn.contract import RewardFunction
from colearn.contract.checked_task import CheckedTask
from colearn.errors import TaskError
from colearn.tasks.dataset import Dataset
from tests.helpers.reward_functions import SEEN

RNG = np.random.default_rng(0)
MATCHES = "tests.helpers.reward_functions:matches"
LATER = "tests.helpers.reward_functions:later"


@pytest.fixture
def data(tmp_path):
    def write(*rows):
        path = tmp_path / "train.jsonl"
        path.write_text("\n".join(json.dumps(row) for row in rows))
        return str(path)

    return write


@pytest.fixture
def red(data):
    """Two rows whose colour is red."""
    return data(*[{"prompt": "paint", "colour": "red"}] * 2)


def last(task, *stages):
    """The last outcome of an episode in which each stage's agents say the given texts."""
    state = task.reset(task.items("train")[0], RNG)
    for said in stages:
        outcome = task.step(state, said, RNG)
        state = outcome.state
    return outcome


def told(task):
    """The prompts, completions and columns of one call of `looks`."""
    SEEN.clear()
    last(task, {"agent": "blue"})
    return SEEN[0]


def test_a_reward_may_be_one_function_with_its_settings(red):
    task = Dataset(red, {"name": "function", "target": MATCHES})
    assert last(task, {"agent": "red"}).reward == 1.0


def test_a_function_that_does_not_apply_adds_nothing_as_in_trls_sum(red):
    task = Dataset(red, [MATCHES, "tests.helpers.reward_functions:skips"], weights=(2.0, 5.0))
    outcome = last(task, {"agent": "red"})
    assert outcome.reward == 2.0
    assert task.metrics(outcome.state) == {
        "reward": 2.0,
        "reward_matches": 1.0,
        "reward_skips": None,
    }


def test_a_completion_to_which_no_function_applies_is_not_scored(red):
    functions = ["tests.helpers.reward_functions:skips", "tests.helpers.reward_functions:only_blue"]
    task = Dataset(red, {"team": functions, "agent": functions[0]})
    outcome = last(task, {"agent": "red"})
    assert outcome.reward is None and outcome.local_rewards == {"agent": None}


def test_an_async_function_applies_to_some_rows(data):
    rows = [{"prompt": "paint", "colour": "blue"}] * 3
    task = Dataset(
        data(*rows), ["tests.helpers.reward_functions:" + n for n in ("only_red", "only_blue")]
    )
    assert last(task, {"agent": "x"}).reward == 0.25


@pytest.mark.parametrize(
    ("function", "line"),
    [
        ("not_a_number", "returned nan; return a finite number, or None"),
        ("boundless", "returned inf; return a finite number, or None"),
        ("beyond", "returned a number beyond 1.79769e+308; return a number"),
        ("text", "returned '1'; return a number instead of a text"),
        ("bare_text", "returned a text, '1'; return a list with one reward per completion"),
        ("mapping", "returned a dict, {1: 2.0}; return a list with one reward per completion"),
    ],
)
def test_a_reward_that_is_no_finite_number_is_one_line_with_the_item(red, function, line):
    task = Dataset(red, [MATCHES, f"tests.helpers.reward_functions:{function}"])
    state = task.reset(task.items("train")[0], RNG)
    with pytest.raises(TaskError) as caught:
        CheckedTask(task, str(task.items("train")[0])).step(state, {"agent": "red"}, RNG)
    assert re.search(f"task.reward: '.*{function}' {re.escape(line)}", str(caught.value))
    assert "item 'line 1 of" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("function", ["fails", "fails_later"])
def test_a_reward_that_raises_is_named_with_its_line(red, function):
    task = Dataset(red, [MATCHES, f"tests.helpers.reward_functions:{function}"])
    state = task.reset(task.items("train")[0], RNG)
    line = (
        f"^task.reward: 'tests.helpers.reward_functions:{function}' raised ValueError: no such "
        r"word \(.*reward_functions.py, line \d+\); fix it there; in Dataset, item 'line 1 of "
    )
    with pytest.raises(TaskError, match=line):
        CheckedTask(task, str(task.items("train")[0])).step(state, {"agent": "red"}, RNG)


def test_weights_are_those_of_the_teams_functions_alone(red):
    reward = {"team": MATCHES, "draft": [MATCHES, LATER]}
    task = Dataset(red, reward, weights=(3.0,), agents=("draft", "final"))
    outcome = last(task, {"draft": "red"}, {"final": "red"})
    assert (outcome.reward, outcome.local_rewards) == (3.0, {"draft": 1.5})


@dataclass(frozen=True, kw_only=True)
class Measured(RewardFunction):
    """Counts the letters of the completion."""

    label = "measured"
    measures = ("letters",)

    def __call__(self, prompts, completions, log_metric, **columns):
        log_metric("letters", sum(map(len, completions)) / len(completions))
        return [1.0] * len(completions)


def test_what_a_function_measures_is_a_metric_of_the_task(red):
    task = Dataset(red, {"name": f"{__name__}:Measured"})
    assert task.measures == ("reward", "reward_measured", "reward_measured_letters")
    assert task.metrics(last(task, {"agent": "red"}).state) == {
        "reward": 1.0,
        "reward_measured": 1.0,
        "reward_measured_letters": 3.0,
    }


def test_functions_of_one_name_are_measured_apart(red):
    reward = {"team": [MATCHES, LATER, MATCHES, MATCHES], "draft": MATCHES}
    task = Dataset(red, reward, agents=("draft", "final"))
    measured = task.metrics(last(task, {"draft": "blue"}, {"final": "red"}).state)
    assert measured == {
        "reward": 3.5,
        "reward_matches": 1.0,
        "reward_later": 0.5,
        "reward_matches_2": 1.0,
        "reward_matches_3": 1.0,
        "reward_draft_matches": 0.0,
    }


def test_a_prompt_of_messages_without_a_system_text_is_told_as_it_is(data):
    prompt = [
        {"role": "user", "content": "hill"},
        {"role": "assistant", "content": "red"},
        {"role": "user", "content": "barn"},
    ]
    prompts, _, _ = told(
        Dataset(data(*[{"prompt": prompt}] * 2), "tests.helpers.reward_functions:looks")
    )
    assert prompts == [prompt]


def test_a_column_of_prompts_beside_the_one_that_is_read_is_not_told(data):
    row = {"question": "a", "prompt": "b", "completion_ids": [7]}
    task = Dataset(data(row, row), "tests.helpers.reward_functions:looks", prompt="question")
    columns = told(task)[2]
    assert "prompt" not in columns and columns["completion_ids"] == [[]]


class Priced(RewardFunction):
    """Costs two calls and its price."""

    def __init__(self, price):
        self.price = price

    @property
    def label(self):
        return "priced"

    def costs(self):
        return {"calls": 2.0, f"price {self.price}": self.price}

    def __call__(self, prompts, completions, **columns):
        return [0.0]


def test_costs_of_all_functions_add_up(red):
    task = Dataset(red, {"team": [MATCHES, MATCHES], "agent": MATCHES})
    task.rewards = {"team": (Priced(3.0), Priced(5.0)), "agent": (Priced(7.0),)}
    assert task.costs() == {"calls": 6.0, "price 3.0": 3.0, "price 5.0": 5.0, "price 7.0": 7.0}


def test_words_are_drawn_from_all_of_an_agents_own(red):
    words = {"left": ("a", "b", "c"), "right": ("d",)}
    task = Dataset(red, MATCHES, agents=("left", "right", "last"), words=words)
    state = task.reset(task.items("train")[0], RNG)
    rng = np.random.default_rng(0)
    drawn = {a: {task.legal_action(state, a, rng) for _ in range(50)} for a in task.agents}
    assert drawn == {"left": {"a", "b", "c"}, "right": {"d"}, "last": {None}}


@pytest.mark.parametrize(
    ("function", "line"),
    [
        ("other_column", "missing a required argument: 'answers'"),
        ("no_more", "got an unexpected keyword argument '"),
    ],
)
def test_a_function_whose_parameters_are_no_columns_is_told_what_it_is_given(red, function, line):
    task = Dataset(red, f"tests.helpers.reward_functions:{function}")
    state = task.reset(task.items("train")[0], RNG)
    with pytest.raises(TaskError) as caught:
        CheckedTask(task, "one").step(state, {"agent": "red"}, RNG)
    message = str(caught.value)
    assert f"reward_functions:{function}' cannot be called: {line}" in message
    assert "it is given prompts, completions, " in message and "colour" in message
    assert "\n" not in message
