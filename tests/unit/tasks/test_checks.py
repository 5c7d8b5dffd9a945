"""Checks that tasks share."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from complete_tasks import COMPLETE_TASKS
from random_play import task_of

from colearn.errors import ConfigError
from colearn.tasks.checks import check_finite


@pytest.mark.parametrize(
    ("value", "bounds", "told"),
    [
        (math.nan, {}, "must be a finite number, got nan; the default is -4"),
        (True, {}, "must be a finite number, got True; the default is -4"),
        ("3", {}, "must be a finite number, got '3'; the default is -4"),
        (-0.5, {"least": 0}, "must be a number of 0 or more, got -0.5; the default is -4"),
        (0, {"above": 0}, "must be a number above 0, got 0; the default is -4"),
        (math.inf, {"above": 0}, "must be a number above 0, got inf; the default is -4"),
    ],
)
def test_a_number_out_of_bounds_is_one_line_with_the_bound_and_the_remedy(
    value: object, bounds: dict[str, Any], told: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        check_finite("shift", value, "the default is -4", **bounds)
    assert str(raised.value) == f"task.shift: {told}"


@pytest.mark.parametrize(
    ("value", "bounds"), [(-4, {}), (0.0, {"least": 0}), (1e-9, {"above": 0}), (2, {"least": 2})]
)
def test_a_number_at_its_bound_is_taken(value: float, bounds: dict[str, Any]) -> None:
    check_finite("shift", value, **bounds)


OTHER_TASKS = ("dataset", "environment", "harbor", "reasoning_gym", "textarena")


@pytest.mark.parametrize("name", [*COMPLETE_TASKS, *OTHER_TASKS])
def test_every_task_names_an_unknown_split(name: str, tmp_path: Path) -> None:
    line = r"^task\.items: unknown split 'tests'; did you mean 'test'\?$"
    with pytest.raises(ConfigError, match=line):
        task_of(name, tmp_path).items("tests")
