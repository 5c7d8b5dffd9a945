"""What each joint action of a tree weighs where every turn is to weigh alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from colearn.contract import Episodes, NodeAdvantages
from colearn.types import Tree


def path_weights(tree: Tree[Any]) -> list[float]:
    """For each node the probability of its path, a child drawn at random at every branching, over
    the mean of that probability; 0 at the root.

    The mean over all joint actions of weight * x is then, up to one factor for the whole tree, the
    sum over turns of the mean of x over that turn's K^(t+1) samples: the estimator of CoLLM's
    Propositions 4.1 and 4.2. Where only the root branches, and in a chain, all weights are 1.
    """
    weights = [1.0] * len(tree.nodes)
    for node, below in zip(tree.nodes, tree.below(), strict=True):
        for index in below:
            weights[index] = weights[node.index] / len(below)
    weights[0] = 0.0
    edges = len(tree.nodes) - 1
    mean = sum(weights) / edges if edges else 1.0
    return [weight / mean for weight in weights]


def equal_turns(episodes: Episodes, advantages: Sequence[NodeAdvantages]) -> list[NodeAdvantages]:
    """Advantages multiplied by `path_weights`."""
    return [
        tuple(
            {agent: weight * advantage for agent, advantage in node.items()}
            for node, weight in zip(by_node, path_weights(episode.tree), strict=True)
        )
        for episode, by_node in zip(episodes, advantages, strict=True)
    ]
