"""Recursions over a rollout tree, as one agent sees it.

A node has a value for an agent where its critic gives one: with a decentral critic where the agent
acts, with a central one wherever the team's history is read. Between two such nodes rewards are
collected as they come, so sequential play needs no case of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from colearn.types import Tree

Values = Sequence[float | None]
"""One agent's values, by node."""


def children(tree: Tree[Any]) -> list[list[int]]:
    """The children of every node, in one pass."""
    below: list[list[int]] = [[] for _ in tree.nodes]
    for node in tree.nodes:
        if node.parent is not None:
            below[node.parent].append(node.index)
    return below


def ahead(tree: Tree[Any], below: Sequence[int], worth: Sequence[float], discount: float) -> float:
    """Mean over the children `below` of r + discount * worth; 0 where there is none."""
    if not below:
        return 0.0
    return sum(tree.nodes[c].reward + discount * worth[c] for c in below) / len(below)


def bootstrap(tree: Tree[Any], values: Values, discount: float, trace: float = 0.0) -> list[float]:
    """What each node is worth: 0 where the episode has ended, V where the critic gives one, else
    the mean over children of r + discount * their worth.

    With `trace` (lambda) a node with a value mixes (1 - lambda) V and lambda times that mean: the
    TD(lambda) return. A branch that the shape cut before its end is worth its V.
    """
    below = children(tree)
    worth = [0.0] * len(tree.nodes)
    for node in reversed(tree.nodes):
        value = values[node.index]
        future = ahead(tree, below[node.index], worth, discount)
        if node.terminal:
            continue
        if value is None:
            worth[node.index] = future
        elif not below[node.index]:
            worth[node.index] = value
        else:
            worth[node.index] = (1.0 - trace) * value + trace * future
    return worth


def backed_up(
    tree: Tree[Any], values: Values, worth: Sequence[float], discount: float
) -> list[float | None]:
    """The target of each node that has a value: mean over children of r + discount * worth.

    A cut branch has no child to learn from: its target is its own V, an error of 0.
    """
    return [
        ahead(tree, below, worth, discount) if value is not None and below else value
        for value, below in zip(values, children(tree), strict=True)
    ]
