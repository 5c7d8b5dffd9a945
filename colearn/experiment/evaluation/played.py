"""What is played in an evaluation and what it comes to, whoever plays: the trainer or servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from colearn.config import EvaluationSettings
from colearn.contract import Credit, DecPOMDP
from colearn.errors import TaskError
from colearn.rollout.transition import items_of
from colearn.types import Credited, Tree


def evaluation_items(
    task: DecPOMDP[Any, Any], settings: EvaluationSettings
) -> tuple[list[Any], int]:
    """The items of all episodes in their order, and how many the split has.

    Errors: TaskError where the task breaks its contract.
    """
    split = items_of(task, settings.split)
    played = settings.episodes or len(split)
    items = [split[number % len(split)] for number in range(played)] * settings.repeats
    return items, len(split)


def credited_returns(trees: Sequence[Tree[Any]], credit: Credit) -> dict[str, float]:
    """`return`: undiscounted, as the algorithm credits it, mean over agents and episodes; where
    agents are credited differently, also `return/AGENT`."""
    by_agent: dict[str, list[float]] = {agent: [] for agent in trees[0].agents}
    for tree in trees:
        episode = Credited(tree=tree, rewards=credit(tree))
        for agent, found in by_agent.items():
            found.append(episode.returns(agent)[0])
    means = {agent: float(np.mean(found)) for agent, found in by_agent.items()}
    if len(set(means.values())) == 1:
        return {"return": next(iter(means.values()))}
    own = {f"return/{agent}": mean for agent, mean in means.items()}
    return {"return": float(np.mean(list(means.values())))} | own


def mean_outcomes(trees: Sequence[Tree[Any]], credit: Credit) -> dict[str, float]:
    """`return`, the task's own metrics at the end, and `overlong`, means over chains."""
    ends = [tree.nodes[-1] for tree in trees]
    metrics = credited_returns(trees, credit)
    names = ends[0].metrics.keys()
    for end in ends:
        if end.metrics.keys() != names:
            raise TaskError(
                f"task.metrics: names change from {sorted(names)} to {sorted(end.metrics)}; give "
                "the same ones for each state"
            )
    for key in names:
        metrics[key] = float(np.mean([end.metrics[key] for end in ends]))
    metrics["overlong"] = mean_overlong(trees)
    return metrics


def mean_overlong(trees: Sequence[Tree[Any]]) -> float:
    """The share of episodes in which an answer was cut off at its token limit."""
    cut = [
        any(action.finish == "length" for node in tree.nodes for action in node.actions.values())
        for tree in trees
    ]
    return float(np.mean(cut))


def mean_turns(trees: Sequence[Tree[Any]]) -> float:
    """Turns of an episode."""
    return float(np.mean([tree.nodes[-1].turn for tree in trees]))
