"""Update diagnostics: explained variance and advantage statistics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from colearn.contract import Advantages, AgentValues, Episodes
from colearn.value_model.explained_variance import action_worth, explained_variance, pairs


def advantage_metrics(
    advantages: Advantages,
    episodes: Episodes,
    values: Sequence[AgentValues] | None,
    *,
    of_state: bool = True,
) -> dict[str, float]:
    """Returns the mean, standard deviation and number of the advantages. If `values` are given,
    also returns the fraction of the credited returns' variance that the values explain. If
    alternative actions have values, also returns the part of this fraction that the action
    explains. If `of_state` is true, the return of a node is the return after the node; otherwise,
    it is the return of the edge into the node."""
    actions: list[float | tuple[float, ...]] = [
        value for tree in advantages for node in tree for value in node.values()
    ]
    metrics = {"advantage/actions": float(len(actions))}
    flat = np.hstack([np.asarray(value, dtype=float) for value in (*actions, ())])
    if len(flat):
        metrics |= {"advantage/mean": float(np.mean(flat)), "advantage/std": float(np.std(flat))}
    if values is not None:
        told = list(pairs(episodes, values, of_state=of_state))
        if not told:
            return metrics  # no trained agent acted, or nothing is scored
        explained = explained_variance(told)
        if explained is not None:
            metrics["critic/explained_variance"] = explained
        worth = action_worth(episodes, values)
        if worth is not None:
            metrics["critic/action_worth"] = worth
        metrics["critic/value_mean"] = float(np.mean([pair.value for pair in told]))
    return metrics
