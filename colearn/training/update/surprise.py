"""Measures a critic's surprise at the nodes of trees, for rollout shapes that fork there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from colearn.contract import AgentValues, Episodes, Parts
from colearn.contract.types import Tree
from colearn.methods.advantage.gae import GAE
from colearn.methods.values.critics import Critics, Learns, anybody
from colearn.methods.values.item_means import ItemMeans


@dataclass(frozen=True, slots=True, kw_only=True)
class Surprise:
    """An `Uncertainty`: the largest absolute TD error over the agents i that act at a node and over
    the node's joint actions.

        s(h_t) = max |r_{i,t} + gamma V_i(h_{t+1}) - V_i(h_t)|

    With `critic.baseline: item`, V is the item's mean plus a share of the network's residual, both
    from earlier iterations. A node without a scored joint action, and a node at which no agent with
    a value acts, has no entry. The values of a given critic are shifted only in the first update,
    so in the first iteration the shift is part of s where an episode ends.
    """

    parts: Parts
    critics: Critics
    learns: Learns = anybody
    item_means: ItemMeans | None = field(default=None, repr=False)
    """The means that are part of the values; None if values come only from the network."""

    def __call__(self, trees: Sequence[Tree[Any]]) -> list[Mapping[tuple[int, ...], float]]:
        values = self.critics.values(trees, self.learns, self.item_means)
        return surprises(self.parts.credited(trees), values)


def surprises(
    episodes: Episodes, values: Sequence[AgentValues]
) -> list[Mapping[tuple[int, ...], float]]:
    """Return s (`Surprise`) for every tree, by the path of the node."""
    by_tree: list[Mapping[tuple[int, ...], float]] = []
    for episode, errors in zip(episodes, GAE()(episodes, values), strict=True):
        nodes, by_path = episode.nodes, dict[tuple[int, ...], float]()
        for node, by_agent in zip(nodes, errors, strict=True):
            if node.parent is not None and by_agent:
                path = nodes[node.parent].path
                by_path[path] = max(by_path.get(path, 0.0), *map(abs, by_agent.values()))
        by_tree.append(by_path)
    return by_tree
