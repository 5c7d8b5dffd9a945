"""Update diagnostics: explained variance, statistics of advantages, and the similarity of answers
in the groups that an advantage compares (MHGPO, Figures 7 and 9)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from colearn.contract import Advantages, AgentValues, AnswerGroup, Episodes
from colearn.value_model.explained_variance import action_worth, explained_variance, pairs
from colearn.workflow.qa import f1

_ZERO = 1e-8
"""Largest magnitude of an advantage that counts as 0: means of equal returns are rounded."""


def advantage_metrics(
    advantages: Advantages,
    episodes: Episodes,
    values: Sequence[AgentValues] | None,
    *,
    of_state: bool = True,
) -> dict[str, float]:
    """Returns the mean, standard deviation and number of the advantages, and the share that is 0.
    If `values` are given, also returns the fraction of the credited returns' variance that the
    values explain. If alternative actions have values, also returns the part of this fraction that
    the action explains. If `of_state` is true, the return of a node is the return after the node;
    otherwise, it is the return of the edge into the node."""
    actions: list[float | tuple[float, ...]] = [
        value for tree in advantages for node in tree for value in node.values()
    ]
    metrics = {"advantage/actions": float(len(actions))}
    flat = np.hstack([np.asarray(value, dtype=float) for value in (*actions, ())])
    if len(flat):
        metrics |= {
            "advantage/mean": float(np.mean(flat)),
            "advantage/std": float(np.std(flat)),
            "advantage/zero": float(np.mean(np.abs(flat) <= _ZERO)),
        }
    if values is not None:
        value_pairs = list(pairs(episodes, values, of_state=of_state))
        if not value_pairs:
            return metrics  # no trained agent acted, or nothing is scored
        explained = explained_variance(value_pairs)
        if explained is not None:
            metrics["critic/explained_variance"] = explained
        worth = action_worth(episodes, values)
        if worth is not None:
            metrics["critic/action_worth"] = worth
        metrics["critic/value_mean"] = float(np.mean([pair.value for pair in value_pairs]))
    return metrics


def similarity_metrics(groups: Sequence[AnswerGroup]) -> dict[str, float]:
    """Computes two metrics for each agent: the mean word-level F1 over pairs of answers in a group,
    and the fraction of pairs that answer the same prompt. Groups have equal weight; every group has
    at least two answers."""
    by_metric: dict[str, list[float]] = defaultdict(list)
    for group in groups:
        compared = list(combinations(range(len(group.answers)), 2))
        alike = [f1(group.answers[first], [group.answers[second]]) for first, second in compared]
        same_prompt = [group.prompts[first] == group.prompts[second] for first, second in compared]
        by_metric[f"{group.agent}/similarity"].append(float(np.mean(alike)))
        by_metric[f"{group.agent}/same_prompt"].append(float(np.mean(same_prompt)))
    return {name: float(np.mean(values)) for name, values in by_metric.items()}
