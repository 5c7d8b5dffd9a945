"""Code that a config names and that changes its arguments, yields, or returns odd values.

The table of all tried cases is `benchmarks/results/reports.md`.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from colearn.contract import Headline
from colearn.contract.task_results import validate_costs, validate_items
from colearn.deploy.client.protocol.errors import ServeError
from colearn.deploy.client.protocol.schema import parse
from colearn.errors import ColearnError
from colearn.programs.gateway.payments import NoReward, number
from colearn.programs.gateway.task import Gateway
from colearn.tasks.dataset import Dataset
from colearn.tasks.environment import Environment
from colearn.tasks.environment.live_environment import LiveEnvironment, tool_schemas
from colearn.training.callbacks import EarlyStopping
from tests.helpers.gateway_programs import RNG, opened

HERE = __name__
ROWS = ({"prompt": "a", "answers": ["x", {"y": ["z"]}]}, {"prompt": "b", "answers": []})


def told(call: Callable[..., Any], *arguments: Any, **named: Any) -> str:
    with pytest.raises((ColearnError, NoReward, ServeError)) as error:
        call(*arguments, **named)
    assert "\n" not in str(error.value)
    return str(error.value)


def rows_file(folder: Path) -> Path:
    file = folder / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return file


# --- code that changes its arguments ------------------------------------------------------------


def empties(prompts: Any, completions: Any, answers: Any, **_: Any) -> list[float]:
    found = float(answers[0] == ["x", {"y": ["z"]}])
    answers[0][1]["y"].clear()
    answers[0].clear()
    return [found]


def test_a_reward_that_changes_its_columns_changes_no_later_call(tmp_path: Path) -> None:
    task = Dataset(path=str(rows_file(tmp_path)), reward=f"{HERE}:empties", test_share=0.5)
    item = task.items("train")[0]
    rewards = [task.step(task.reset(item, RNG), {"agent": "x"}, RNG).reward for _ in range(2)]
    assert rewards == [1.0, 1.0]


class Empties:
    """An environment whose `reset` empties its row."""

    def reset(self, answers: list[Any], **_: Any) -> str:
        shown = json.dumps(answers)
        answers.clear()
        return shown


def test_an_environment_that_changes_its_row_changes_no_later_episode(tmp_path: Path) -> None:
    task = Environment(f"{HERE}:Empties", path=str(rows_file(tmp_path)), test_share=0.5)
    item = task.items("train")[0]
    shown = [task.reset(item, RNG).shown for _ in range(2)]
    task.close()
    assert shown[0] == shown[1] == 'a["x", {"y": ["z"]}]'


def rows(split: str) -> list[Any]:
    return [dict(row) for row in ROWS]


def takes_the_answer(item: Any, endpoints: Any) -> float:
    return float(item.pop("answers") == ["x", {"y": ["z"]}])


def reads_the_answer(item: Any, result: float) -> float:
    return float("answers" in item) + result


def test_a_program_that_changes_its_item_changes_neither_grade_nor_later_episodes() -> None:
    task = opened(Gateway(("one",), f"{HERE}:rows", play=f"{HERE}:takes_the_answer", timeout=600.0))
    task.grade = f"{HERE}:reads_the_answer"
    item = task.items("train")[0]
    paid = [task.reset(item, RNG).payments for _ in range(2)]
    assert [[one.value for one in payments] for payments in paid] == [[2.0], [2.0]]


# --- rewards ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "reward"),
    [
        (True, 1.0),
        (np.bool_(True), 1.0),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3.0),
        (np.array(2.0), 2.0),
        (Decimal("0.25"), 0.25),
        (Fraction(1, 4), 0.25),
    ],
)
def test_a_programs_reward_may_be_any_number(value: Any, reward: float) -> None:
    assert number(value, "it") == reward


@pytest.mark.parametrize("value", ["1", b"1", 1j, None, [1.0], Decimal("Infinity"), np.nan])
def test_what_is_no_number_is_no_reward_of_a_program(value: Any) -> None:
    assert "must be" in told(number, value, "it")


def endless(prompts: Any, completions: Any, **_: Any) -> Iterator[float]:
    return itertools.repeat(1.0)


def test_rewards_without_end_are_one_line(tmp_path: Path) -> None:
    task = Dataset(path=str(rows_file(tmp_path)), reward=f"{HERE}:endless", test_share=0.5)
    state = task.reset(task.items("train")[0], RNG)
    message = told(task.step, state, {"agent": "x"}, RNG)
    assert "returned 2 or more rewards for 1 completions" in message


# --- tools --------------------------------------------------------------------------------------


class _NoText(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class Tools:
    """An environment with odd tools."""

    def reset(self) -> None: ...

    def half(self) -> str:
        """T."""
        return "a\ud800"

    def fails(self) -> str:
        """T."""
        raise _NoText

    def later(self) -> Any:
        """T."""
        return (one for one in "ab")


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        ("half", "half of a surrogate pair"),
        ("fails", "its str() raises"),
        ("later", "the tool yields; its result must be a text"),
    ],
)
def test_a_result_without_a_text_is_an_error_that_the_model_reads(tool: str, text: str) -> None:
    live = LiveEnvironment(f"{HERE}:Tools", 0, {})
    result = live.call(tool, {})
    live.close()
    assert result.failed and text in result.text


class Yields(Tools):
    """An environment whose tool is a generator."""

    async def lines(self) -> Any:
        """T."""
        yield "a"


def test_a_tool_that_yields_is_one_line_before_the_run() -> None:
    assert "method lines is no tool: it yields" in told(tool_schemas, f"{HERE}:Yields")


# --- items of programs --------------------------------------------------------------------------


@pytest.mark.parametrize("item", [object(), {"a": float("nan")}, {1, 2}, "\ud800", b"a"])
@pytest.mark.parametrize("settings", [{"command": ("true",)}, {"command": ("cat",), "workers": 1}])
def test_an_item_that_is_no_plain_data_is_one_line(item: Any, settings: Any) -> None:
    task = opened(Gateway(("one",), f"{HERE}:rows", timeout=600.0, **settings))
    assert "task.items: an item is not plain data" in told(task.reset, item, RNG)


def test_an_item_that_is_too_long_for_the_environment_is_one_line() -> None:
    command = (sys.executable, "-c", "")
    task = opened(Gateway(("one",), f"{HERE}:rows", timeout=600.0, command=command))
    message = told(task.reset, "x" * 200_000, RNG)
    assert "COLEARN_ITEM has 200002 characters" in message and "task.workers" in message


@pytest.mark.parametrize("items", ["abc", b"abc", {"a": 1}])
def test_a_text_or_a_mapping_is_no_list_of_items(items: Any) -> None:
    assert "must be a sequence" in told(validate_items, items, "train")


# --- what is sent to a server -------------------------------------------------------------------


def test_a_key_that_a_request_has_twice_is_refused() -> None:
    body = b'{"messages": [{"role": "user", "content": "a"}], "max_tokens": 1, "max_tokens": 9}'
    assert "holds the key 'max_tokens' twice" in told(parse, body)


# --- held-out rows ------------------------------------------------------------------------------


@pytest.mark.parametrize("spelling", ["{folder}/./rows.jsonl", "{folder}/link.jsonl"])
def test_rows_that_are_trained_on_are_not_held_out_under_another_name(
    spelling: str, tmp_path: Path
) -> None:
    file = rows_file(tmp_path)
    (tmp_path / "link.jsonl").symlink_to(file)
    other = spelling.format(folder=tmp_path)
    message = told(Dataset, path=str(file), reward=f"{HERE}:empties", test_path=other)
    assert "task.test_path: equals task.path" in message


# --- numbers of the user's that a run records -----------------------------------------------------


@pytest.mark.parametrize("costs", [{"calls": math.nan}, {"calls": math.inf}, {1: 1.0}, [1.0], None])
def test_a_total_that_no_record_can_hold_is_one_line(costs: Any) -> None:
    """A record with NaN could not be read again: the run was lost to resumes and reports."""
    assert "task.costs: " in told(validate_costs, costs)


def test_a_metric_that_is_nan_stops_no_run_that_improves() -> None:
    """No value is above NaN, so that a run with such a first value ended after its patience."""
    stopping = EarlyStopping(patience=2)
    values = [math.nan, 1.0, math.nan, 2.0, 3.0, 4.0]
    assert [stopping._judge(value, Headline("return")) for value in values] == [None] * 6


def test_a_team_that_names_an_agent_team_is_one_line(tmp_path: Path) -> None:
    reward = {"team": f"{HERE}:empties", "one": f"{HERE}:empties"}
    message = told(Dataset, path=str(rows_file(tmp_path)), reward=reward, agents=("one", "team"))
    assert "task.agents: 'team' names the functions of all agents" in message
