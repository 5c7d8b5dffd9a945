"""Update diagnostics: explained variance and advantage statistics."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

import numpy as np

from colearn.contract import Advantages, AgentValues, Episodes
from colearn.scored import mean_scored

ROUNDING = 1e-9
"""Returns that differ by less, relative to the largest, are equal: there is nothing to explain."""


def advantage_metrics(
    advantages: Advantages,
    episodes: Episodes,
    values: Sequence[AgentValues] | None,
    *,
    of_state: bool = True,
) -> dict[str, float]:
    """Mean, deviation and number of the advantages; with `values`, the fraction of the credited
    returns' variance that they explain. The return is that after a node for values `of_state`, else
    that of the edge into it."""
    actions: list[float | tuple[float, ...]] = [
        value for tree in advantages for node in tree for value in node.values()
    ]
    metrics = {"advantage/actions": float(len(actions))}
    flat = np.hstack([np.asarray(value, dtype=float) for value in (*actions, ())])
    if len(flat):
        metrics |= {"advantage/mean": float(np.mean(flat)), "advantage/std": float(np.std(flat))}
    if values is not None:
        pairs = []
        for episode, by_agent in zip(episodes, values, strict=True):
            below = episode.tree.below()
            for agent, series in by_agent.items():
                returns = episode.returns(agent)
                pairs += [
                    (v, actual)
                    for k, v in enumerate(series)
                    if v is not None and (edges := below[k] if of_state else [k])
                    if not isnan(actual := mean_scored(returns[edge] for edge in edges))
                ]
        if not pairs:
            return metrics  # no trained agent acted, or nothing is scored
        predicted, reached = np.array(pairs).T
        spread = float(np.var(reached))
        if spread > (ROUNDING * np.abs(reached).max()) ** 2:
            metrics["critic/explained_variance"] = 1 - float(np.var(reached - predicted)) / spread
        metrics["critic/value_mean"] = float(predicted.mean())
    return metrics
