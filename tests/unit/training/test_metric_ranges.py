"""Bounds of evaluation metrics in run.json, by the unit of a metric and the task's rewards."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from colearn.training.metric_ranges import metric_ranges

SHARE = (0.0, 1.0)


def ranges(name: str, *metrics: str, pays: str = "team", **bounds: Any) -> dict[str, Any]:
    task = {"horizon": 3, "reward_range": (-1.0, 2.0), "pays": {pays}} | bounds
    return metric_ranges(cast(Any, SimpleNamespace(**task)), name, metrics)


def test_a_share_is_between_0_and_1_for_the_team_and_an_agent() -> None:
    known = ranges("harvest", "sold", "luck", "pass@4", "cut_answers/ada", "turns", "own")
    assert known == dict.fromkeys(("sold", "pass@4", "cut_answers/ada"), SHARE)


@pytest.mark.parametrize(
    ("reward_range", "bounds"),
    [((-1.0, 2.0), (-3.0, 6.0)), ((1.0, 2.0), (0.0, 6.0)), ((-2.0, -1.0), (-6.0, 0.0))],
)
def test_a_return_is_a_sum_of_up_to_horizon_rewards(
    reward_range: tuple[float, float], bounds: tuple[float, float]
) -> None:
    known = ranges("own", "return", "exact_return", reward_range=reward_range)
    assert known == {"return": bounds, "exact_return": bounds}


def test_a_return_without_declared_team_rewards_has_no_bounds() -> None:
    assert ranges("own", "return", reward_range=None) == {}
    assert ranges("own", "return", pays="local") == {}
