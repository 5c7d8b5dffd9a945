"""Bounds of the evaluation metrics of a run. Reports cut their intervals at these bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

from colearn.contract import DecPOMDP
from colearn.runs.record.metric_names import EVALUATION, Metric

Range = tuple[float | None, float | None]

_RETURNS = ("return", "exact_return")


def metric_ranges(task: DecPOMDP[Any, Any], name: str, metrics: Iterable[str]) -> dict[str, Range]:
    """Return the bounds of those of the `metrics` that have some. `name`: the task's name.

    A share is between 0 and 1. A return is the sum of at most `task.horizon` rewards of the team,
    each within `task.reward_range`; it can be 0, because an episode can end before its first
    reward.
    """
    of_task: Mapping[str, Metric] = _task_metrics().get(name, {})
    known = {**EVALUATION, **of_task}
    ranges: dict[str, Range] = {}
    for metric in metrics:
        base = metric.partition("/")[0]
        described = known.get("pass@k" if base.startswith("pass@") else base)
        if described is not None and described.unit == "share":
            ranges[metric] = (0.0, 1.0)
        elif metric in _RETURNS and task.reward_range is not None and "team" in task.pays:
            low, high = task.reward_range
            ranges[metric] = (min(0.0, task.horizon * low), max(0.0, task.horizon * high))
    return ranges


def _task_metrics() -> Mapping[str, Mapping[str, Metric]]:
    """Metrics of the shipped tasks, which are reached by name only."""
    table: Mapping[str, Mapping[str, Metric]] = import_module("colearn.tasks.metrics").TASK_METRICS
    return table
