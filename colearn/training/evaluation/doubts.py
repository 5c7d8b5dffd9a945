"""Writes notes on evaluations with unreliable numbers, such as evaluations with a single episode,
with a single row, or with only cut answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from colearn.config import EvaluationSettings
from colearn.contract import DecPOMDP
from colearn.contract.checked_task import CheckedTask
from colearn.contract.types import Tree

from .pass_at_k import too_few_scored


def doubts(
    trees: Sequence[Tree[Any]],
    task: DecPOMDP[Any, Any],
    settings: EvaluationSettings,
    split_size: int,
) -> Iterator[str]:
    """Returns one line for each reason to doubt an evaluation's means. The line includes the
    remedy.

    A task with a single item in each split, such as a game, has no items to hold out. If each split
    has a single item, only the number of episodes is checked.
    """
    if len(trees) == 1:
        yield (
            "evaluation: one episode says little; raise evaluation.episodes or evaluation.repeats, "
            "or hold out more rows"
        )
    elif split_size == 1 and len(CheckedTask(task).items("train")) > 1:
        yield (
            f"evaluation: the split '{settings.split}' has one row, which says little; hold out "
            "more rows (task.test_share of data)"
        )
    if (line := too_few_scored(trees, settings, split_size)) is not None:
        yield line
    answers = [action for tree in trees for node in tree.nodes for action in node.actions.values()]
    if answers and all(action.finish == "length" for action in answers):
        yield (
            "evaluation: every answer was cut at its token limit; raise "
            "agents.*.sampling.max_tokens, unless answers need no end"
        )
