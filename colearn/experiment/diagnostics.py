"""Numbers about an update that no loss needs and every reader wants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from colearn.contract import AgentValues, NodeAdvantages
from colearn.types import Tree


def advantage_metrics(
    advantages: Sequence[NodeAdvantages],
    trees: Sequence[Tree[Any]],
    values: Sequence[AgentValues] | None,
    reads: Literal["v", "q"] | None,
) -> dict[str, float]:
    """Spread of the advantages; with a V critic, the share of the variance of the undiscounted
    returns that it explains."""
    flat = [value for tree in advantages for node in tree for value in node.values()]
    metrics = {"advantage/mean": float(np.mean(flat)), "advantage/std": float(np.std(flat))}
    if values is not None and reads == "v":
        pairs = []
        for tree, by_agent in zip(trees, values, strict=True):
            below: dict[int, list[float]] = {}
            for node, ret in zip(tree.nodes, tree.returns(1.0), strict=True):
                if node.parent is not None:
                    below.setdefault(node.parent, []).append(ret)
            for series in by_agent.values():
                pairs += [
                    (v, float(np.mean(below[k])))
                    for k, v in enumerate(series)
                    if v is not None and k in below
                ]
        predicted, actual = np.array(pairs).T
        spread = float(np.var(actual))
        if spread > 0:
            metrics["critic/explained_variance"] = 1 - float(np.var(actual - predicted)) / spread
        metrics["critic/value_mean"] = float(predicted.mean())
    return metrics
