"""Weights of joint actions in a tree that give every turn equal weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from colearn.contract import Episodes, NodeAdvantages
from colearn.contract.types import Tree


def path_weights(trees: Sequence[Tree[Any]]) -> list[list[float]]:
    """Compute the weight of each node of each tree. The weight is p / (mean p over all trees),
    where p is the probability of the path to the node if children are chosen uniformly. The root
    has weight 0.

    The mean of weight * x over all joint actions then equals a sum over turns t, up to a factor
    common to all trees. The summand for turn t is the mean of x over the K^(t+1) samples of that
    turn. The sum over turns is the estimator of CoLLM's Propositions 4.1 and 4.2. The equality also
    holds if some branches end early. In chains, and in trees that branch only at the root, all
    weights are 1.
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
    """Multiply advantages by `path_weights`."""
    weights = path_weights(episodes)
    return [
        tuple(
            {agent: weight * advantage for agent, advantage in node.items()}
            for node, weight in zip(by_node, tree_weights, strict=True)
        )
        for tree_weights, by_node in zip(weights, advantages, strict=True)
    ]
