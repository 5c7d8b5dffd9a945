"""What is played in an evaluation and what it comes to, whoever plays: the trainer or servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from colearn.config import EvaluationSettings
from colearn.contract import DecPOMDP
from colearn.rollout.validate import validate_items
from colearn.types import Tree


def evaluation_items(
    task: DecPOMDP[Any, Any], settings: EvaluationSettings
) -> tuple[list[Any], int]:
    """The items of all episodes in their order, and how many the split has.

    Errors: TaskError where the task breaks its contract.
    """
    split = list(validate_items(task.items(settings.split), settings.split))
    played = settings.episodes or len(split)
    items = [split[number % len(split)] for number in range(played)] * settings.repeats
    return items, len(split)


def mean_outcomes(trees: Sequence[Tree[Any]]) -> dict[str, float]:
    """`return` (undiscounted) and the task's own metrics at the end, means over chains."""
    ends = [tree.nodes[-1] for tree in trees]
    metrics = {"return": float(np.mean([tree.returns(1.0)[0] for tree in trees]))}
    for key in ends[0].metrics:
        metrics[key] = float(np.mean([end.metrics[key] for end in ends]))
    return metrics


def mean_turns(trees: Sequence[Tree[Any]]) -> float:
    """Turns of an episode."""
    return float(np.mean([tree.nodes[-1].turn for tree in trees]))
