"""Rewards and metrics that are integers of any length, or no numbers, are one line."""

from __future__ import annotations

import math
from typing import Any

import pytest

from colearn.contract.task_results import validate_metrics, validate_outcome
from colearn.contract.types import Outcome
from colearn.errors import TaskError
from colearn.programs.workflow.team import Team


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (10**400, "an integer beyond a float's range"),
        (-(10**5000), "an integer beyond a float's range"),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
    ],
    ids=["400", "5000", "nan", "inf"],
)
def test_a_number_that_no_float_holds_is_named_by_its_place(number: Any, shown: str) -> None:
    line = f"is {shown}, must be a finite number"
    with pytest.raises(TaskError, match=f"^task.step: reward {line}"):
        validate_outcome(Outcome(state=None, reward=number), ("a",))
    with pytest.raises(TaskError, match=f"^task.step: local reward of 'a' {line}"):
        validate_outcome(Outcome(state=None, reward=0.0, local_rewards={"a": number}), ("a",))
    with pytest.raises(TaskError, match=f"^task.metrics: 'm' {line}"):
        validate_metrics({"m": number})
    with pytest.raises(TaskError, match=f"^workflow.run: reward {line}"):
        Team(None, (), {}, ()).reward(number)  # type: ignore[arg-type]


def test_a_large_integer_within_a_floats_range_is_a_metric() -> None:
    assert validate_metrics({"m": 10**300}) == {"m": 10**300}


def test_a_metric_that_was_not_measured_hides_no_other() -> None:
    with pytest.raises(TaskError, match=r"^task\.metrics: 'm' is nan"):
        validate_metrics({"unmeasured": None, "m": math.nan})
