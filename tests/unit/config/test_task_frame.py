"""A run refuses a task whose agents or horizon it could not play, before it loads a model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tiny import Notes

from colearn.config import load_config
from colearn.config.resolve import resolve
from colearn.contract.checked_task import check_frame
from colearn.errors import TaskError


@pytest.mark.parametrize(
    ("member", "value", "line"),
    [
        ("agents", ("ada", "ada"), "task.agents: must be a tuple of different, non-empty names"),
        ("agents", "ab", "task.agents: must be a tuple of different, non-empty names, got 'ab'"),
        ("horizon", None, "task.horizon: must be a whole number of 1 or more, got None"),
    ],
)
def test_a_task_that_cannot_be_played_is_one_line(member: str, value: Any, line: str) -> None:
    task = Notes()
    setattr(task, member, value)
    config = load_config({"task": "notes", "models": {"*": {"path": "embedded"}}})
    with pytest.raises(TaskError) as error:
        resolve(config, task=task)
    assert str(error.value).startswith(line)


def test_numbers_of_numpy_are_numbers() -> None:
    task = Notes(horizon=np.int64(3))
    task.reward_range = (np.float32(0.0), np.int64(1))
    check_frame(task)
