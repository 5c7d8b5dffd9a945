"""Weights of joint actions in a tree that give every turn equal weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from colearn.contract import Episodes, NodeAdvantages
from colearn.types import Tree


def path_weights(trees: Sequence[Tree[Any]]) -> list[list[float]]:
    """For each node of each tree: the probability of the path to the node under uniform choice of
    children, divided by the mean of that probability over all trees; 0 at the root.

    The mean over all joint actions of weight * x then equals, up to one factor for all trees, the
    sum over turns of the mean of x over that turn's K^(t+1) samples. This is the estimator of
    CoLLM's Propositions 4.1 and 4.2. It also holds if some branches end early. Where only the root
    branches, and in chains, all weights are 1.
    """
    probabilities = [_path_probabilities(tree) for tree in trees]
    edges = sum(len(tree.nodes) - 1 for tree in trees)
    mean = sum(map(sum, probabilities)) / edges if edges else 1.0
    return [[weight / mean for weight in weights] for weights in probabilities]


def _path_probabilities(tree: Tree[Any]) -> list[float]:
    weights = [1.0] * len(tree.nodes)
    for node, below in zip(tree.nodes, tree.below(), strict=True):
        for index in below:
            weights[index] = weights[node.index] / len(below)
    weights[0] = 0.0
    return weights


def equal_turns(episodes: Episodes, advantages: Sequence[NodeAdvantages]) -> list[NodeAdvantages]:
    """Advantages multiplied by `path_weights`."""
    weights = path_weights([episode.tree for episode in episodes])
    return [
        tuple(
            {agent: weight * advantage for agent, advantage in node.items()}
            for node, weight in zip(by_node, tree_weights, strict=True)
        )
        for tree_weights, by_node in zip(weights, advantages, strict=True)
    ]
